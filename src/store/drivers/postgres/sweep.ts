import type { GcReport } from '../../spec.ts'
import type { Connection } from './connection.ts'
import type { Pool } from './pool.ts'
import { beginAlone } from './schema.ts'
import { drained } from './search.ts'

/**
 * Marks from every session's head and every recent chunk, then counts or removes the rest. Writers wait while it removes; counting
 * goes on beside them, on one snapshot.
 */
export async function sweep(pool: Pool, before: number, dryRun: boolean): Promise<Omit<GcReport, 'dryRun'>> {
  return pool.transaction(async connection => {
    await connection.query(dryRun ? 'BEGIN ISOLATION LEVEL REPEATABLE READ' : beginAlone)
    await connection.query('CREATE TEMP TABLE reached (n bigint PRIMARY KEY) ON COMMIT DROP')
    // A subquery and not a join: for a join, the server might read the whole table again for each link of the longest chain.
    await connection.query(
      `INSERT INTO reached
       WITH RECURSIVE chain (n) AS (
         (SELECT head FROM openrath.session WHERE head IS NOT NULL UNION SELECT n FROM openrath.chunk WHERE written >= $1)
         UNION SELECT (SELECT previous FROM openrath.chunk WHERE chunk.n = chain.n) FROM chain WHERE n IS NOT NULL
       ) SELECT n FROM chain WHERE n IS NOT NULL`,
      [Math.ceil(before)],
    )
    await connection.query('ANALYZE reached')
    const lost = await count(connection, lostChunks, 'body', [])
    const loose = await count(connection, looseBlobs, 'bytes', [Math.ceil(before)])
    if (!dryRun) {
      await connection.query(`DELETE ${looseBlobs}`, [Math.ceil(before)])
      for (const [table, column] of dependents) {
        await connection.query(
          `DELETE FROM openrath.${table} WHERE NOT EXISTS (SELECT FROM reached WHERE reached.n = ${table}.${column})`,
        )
      }
      await connection.query(`DELETE FROM openrath.unindexed WHERE ${drained}`)
    }
    return { chunks: lost.count, blobs: loose.count, bytes: lost.bytes + loose.bytes }
  })
}

const lostChunks = 'FROM openrath.chunk WHERE NOT EXISTS (SELECT FROM reached WHERE reached.n = chunk.n)'
const looseBlobs = `FROM openrath.blob WHERE written < $1
  AND NOT EXISTS (SELECT FROM openrath.chunk_blob JOIN reached ON reached.n = chunk_blob.chunk WHERE chunk_blob.blob = blob.id)
  AND NOT EXISTS (SELECT FROM (SELECT decode(unnest(blobs), 'hex') AS id FROM openrath.entry) AS kept WHERE kept.id = blob.id)`

/** Tables whose rows go with a chunk, and the chunks themselves. */
const dependents = [
  ['word', 'chunk'],
  ['chunk_blob', 'chunk'],
  ['chunk', 'n'],
] as const

async function count(
  connection: Connection,
  from: string,
  column: string,
  values: readonly number[],
): Promise<{ count: number; bytes: number }> {
  const [row] = await connection.query<{ count: number; bytes: number }>(
    `SELECT count(*) AS count, coalesce(sum(octet_length(${column})), 0)::bigint AS bytes ${from}`,
    values,
  )
  return row as { count: number; bytes: number }
}
