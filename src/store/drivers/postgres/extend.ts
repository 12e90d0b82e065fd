import type { Digest } from '../../../base/digest.ts'
import { type ChunkRow, type Touched, Unit } from '../../driver.ts'
import type { SessionRow } from '../../spec.ts'
import type { Connection, Value } from './connection.ts'
import type { Pool } from './pool.ts'
import type { KnownSession, SessionMemory } from './session-memory.ts'

/** Many are written faster by one statement of a transaction than by a loop in the server. */
const mostChunks = 200

/** A chunk and the number that it was given, which is no other's. */
export interface Written {
  readonly n: number
  readonly id: Digest
}

interface Attempt {
  readonly outcome: 'done' | 'overtaken' | 'unknown'
  /** The first of the chunks. */
  readonly written?: Written
}

/**
 * Lets `decide` see a session from memory, and sends what it appended to a function of the server, which compares and writes in one trip.
 * `overtaken` when nothing was written: the session is not known, was not only extended, or is not what it was.
 */
export async function extendFromMemory(
  pool: Pool,
  memory: SessionMemory,
  touched: Touched,
  decide: (unit: Unit) => void,
): Promise<Attempt> {
  const known = memory.only(touched)
  if (known === undefined) return { outcome: 'overtaken' }
  const unit = new Unit({ sessions: [known.row], runs: [], entries: [] })
  decide(unit)
  const row = unit.session(known.row.id)
  const chunks = [...unit.chunks.values()]
  if (row === undefined || !isExtension(unit, chunks, known.row, row)) return { outcome: 'overtaken' }

  let first: number | undefined
  const outcome = await pool.attempt(async connection => {
    first = connection.numbers.takeRun(chunks.length)
    if (first !== undefined) await extend(connection, known, row, chunks, first)
  })
  if (first === undefined) return { outcome: 'overtaken' }
  if (outcome === 'done') memory.keep({ ...known, head: first + chunks.length - 1, row })
  else memory.miss(known)
  return { outcome, written: { n: first, id: (chunks[0] as ChunkRow).id } }
}

export async function isWritten(connection: Connection, { n, id }: Written): Promise<boolean> {
  const found = await connection.query(
    "SELECT n FROM openrath.chunk WHERE n = $1 AND id = decode($2, 'hex')",
    [n, id],
  )
  return found.length > 0
}

/** True for chunks of its own, one behind the other and behind the session's newest, and nothing else. */
function isExtension(unit: Unit, chunks: readonly ChunkRow[], before: SessionRow, row: SessionRow): boolean {
  if (chunks.length === 0 || chunks.length > mostChunks || chunks.at(-1)?.id !== row.head) return false
  if (unit.blobs.size + unit.tags.size + unit.changedRuns.size + unit.changedEntries.length > 0) return false
  return chunks.every(
    (chunk, i) =>
      chunk.session === row.id &&
      chunk.blobs.length === 0 &&
      chunk.previous === (i === 0 ? before.head : (chunks[i - 1] as ChunkRow).id),
  )
}

async function extend(
  connection: Connection,
  { n, head, tags, row: before }: KnownSession,
  row: SessionRow,
  chunks: readonly ChunkRow[],
  first: number,
): Promise<void> {
  const queued = connection.queued?.last === first - 1 ? connection.queued.first : null
  const values: Value[] = [n, head, before.length, tags, row.updated, Date.now(), first]
  for (const field of ['id', 'kind', 'body'] as const) values.push(chunks.map(chunk => chunk[field]))
  await connection.query('SELECT openrath.extend($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)', [
    ...values,
    queued,
  ])
  connection.queued = { first: queued ?? first, last: first + chunks.length - 1 }
}
