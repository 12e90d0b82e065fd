import type { BlobRow, ChunkRow } from '../../driver.ts'
import type { SessionRow } from '../../spec.ts'
import type { Connection, Statement, Value } from './connection.ts'
import { blockSize } from './numbers.ts'
import { type Loaded, numberRows, type RowNumbers } from './row-numbers.ts'
import { fromText } from './text.ts'
import type { Unit } from './unit.ts'
import { writeEntries, writeRuns } from './write-runs.ts'
import { deleteSessions, insertSessions, updateSessions, writeTags } from './write-sessions.ts'

const mostRows = 5000
const mostBytes = 16 * 1024 * 1024

/**
 * Writes what a unit of work decided: each kind of row in one statement and in the order of its key. `careful` looks for chunks that
 * are stored already before it writes; otherwise they are taken to be new, and the transaction starts over when one is not.
 */
export async function writeUnit(
  connection: Connection,
  unit: Unit,
  loaded: Loaded,
  careful: boolean,
): Promise<void> {
  const numbers = await numberRows(connection, unit, loaded, careful)
  await connection.write(statements(unit, loaded, numbers))
}

function* statements(unit: Unit, loaded: Loaded, numbers: RowNumbers): Generator<Statement> {
  const { sessions, runs, entries } = unit.written
  const now = Date.now()
  const isLoaded = (row: SessionRow) => numbers.loaded.has(row.id)
  yield* writeBlobs([...unit.blobs.values()].sort(byId), now)
  yield* writeChunks([...unit.chunks.values()].sort(byId), numbers, now)
  yield* insertSessions(sessions.filter(row => !isLoaded(row)).sort(byId), numbers)
  yield* updateSessions(sessions.filter(isLoaded), numbers)
  yield* deleteSessions(loaded.sessions.filter(row => unit.deletedSessions.has(fromText(row.id))))
  yield* writeTags(unit.tags)
  yield* writeRuns(runs, loaded.runs)
  yield* writeEntries(entries, loaded.entries)
}

function* writeBlobs(blobs: readonly BlobRow[], now: number): Generator<Statement> {
  for (const piece of pieces(blobs, 100, blob => blob.bytes.length)) {
    const values: Value[] = [now]
    const place = (value: Value) => `$${values.push(value)}`
    const rows = piece.map(({ id, bytes }) => `(decode(${place(id)}, 'hex'), $1, ${place(bytes)})`)
    const text = `INSERT INTO openrath.blob (id, written, bytes) VALUES ${rows.join(', ')} ON CONFLICT DO NOTHING`
    yield { text, values }
  }
}

function* writeChunks(chunks: readonly ChunkRow[], numbers: RowNumbers, now: number): Generator<Statement> {
  const fresh = chunks.filter(chunk => !numbers.stored.has(chunk.id))
  for (const piece of pieces(fresh, mostRows, chunk => chunk.body.length)) {
    yield {
      inserts: piece.length,
      text: `INSERT INTO openrath.chunk (n, id, previous, position, session, written, kind, body)
        SELECT n, decode(id, 'hex'), previous, position, session, $8::bigint, kind, body
        FROM unnest($1::bigint[], $2::text[], $3::bigint[], $4::integer[], $5::bigint[], $6::text[], $7::text[])
          AS given (n, id, previous, position, session, kind, body)
        ON CONFLICT (id) DO NOTHING`,
      values: [
        piece.map(chunk => numbers.chunk(chunk.id)),
        piece.map(chunk => chunk.id),
        piece.map(chunk => (chunk.previous === null ? null : numbers.chunk(chunk.previous))),
        piece.map(chunk => chunk.index),
        piece.map(chunk => numbers.session(chunk.session)),
        piece.map(chunk => chunk.kind),
        piece.map(chunk => chunk.body),
        now,
      ],
    }
  }
  yield* queueForIndex(fresh.map(chunk => numbers.chunk(chunk.id)))
  const blobs = fresh.flatMap(chunk => chunk.blobs.map(blob => ({ chunk: numbers.chunk(chunk.id), blob })))
  if (blobs.length === 0) return
  yield {
    text: `INSERT INTO openrath.chunk_blob (chunk, blob)
      SELECT chunk, decode(blob, 'hex') FROM unnest($1::bigint[], $2::text[]) AS given (chunk, blob) ON CONFLICT DO NOTHING`,
    values: [blobs.map(row => row.chunk), blobs.map(row => row.blob)],
  }
}

/** New chunks wait for the word index by the first and last of their numbers, which were handed out side by side. */
function* queueForIndex(numbers: readonly number[]): Generator<Statement> {
  if (numbers.length === 0) return
  const blocks = [...Map.groupBy(numbers, n => Math.floor(n / blockSize)).values()]
  yield {
    text: 'INSERT INTO openrath.unindexed (first, last) SELECT * FROM unnest($1::bigint[], $2::bigint[])',
    values: [blocks.map(block => Math.min(...block)), blocks.map(block => Math.max(...block))],
  }
}

/** Slices that fit into one statement. */
function* pieces<T>(rows: readonly T[], most: number, size: (row: T) => number): Generator<readonly T[]> {
  let start = 0
  let bytes = 0
  for (const [i, row] of rows.entries()) {
    if (i > start && (i - start === most || bytes + size(row) > mostBytes)) {
      yield rows.slice(start, i)
      start = i
      bytes = 0
    }
    bytes += size(row)
  }
  if (start < rows.length) yield rows.slice(start)
}

function byId(a: { readonly id: string }, b: { readonly id: string }): number {
  return a.id < b.id ? -1 : 1
}
