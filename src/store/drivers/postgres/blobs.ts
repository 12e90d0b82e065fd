import type { Digest } from '../../../base/digest.ts'
import type { Pool } from './pool.ts'

const together = 64
const mostTogether = 256 * 1024
/** Bytes arrive written out in hex, twice as long, and a string has an end. */
const slice = 16 * 1024 * 1024

/** Small blobs many at a time, large ones each in slices. */
export async function readBlobs(pool: Pool, ids: readonly Digest[]): Promise<Map<Digest, Uint8Array>> {
  const found = new Map<Digest, Uint8Array>()
  for (let start = 0; start < ids.length; start += together) {
    const rows = await pool.query<{ id: Digest; size: number; bytes: Uint8Array | null }>(
      `SELECT encode(id, 'hex') AS id, octet_length(bytes) AS size,
         CASE WHEN octet_length(bytes) <= ${mostTogether} THEN bytes END AS bytes
       FROM openrath.blob WHERE id IN (SELECT decode(given, 'hex') FROM unnest($1::text[]) AS given)`,
      [ids.slice(start, start + together)],
    )
    for (const { id, size, bytes } of rows) found.set(id, bytes ?? (await readLarge(pool, id, size)))
  }
  return found
}

async function readLarge(pool: Pool, id: Digest, size: number): Promise<Uint8Array> {
  const whole = new Uint8Array(size)
  for (let from = 0; from < size; from += slice) {
    const [row] = await pool.query<{ bytes: Uint8Array }>(
      "SELECT substring(bytes FROM $2 FOR $3) AS bytes FROM openrath.blob WHERE id = decode($1, 'hex')",
      [id, from + 1, slice],
    )
    if (row) whole.set(row.bytes, from)
  }
  return whole
}
