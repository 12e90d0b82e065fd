import { RathError } from '../../../base/errors.ts'
import type { Connection } from './connection.ts'
import type { EntryRecord, RunColumns, SessionRecord } from './rows.ts'
import { fromText } from './text.ts'
import type { Unit } from './unit.ts'

/** The locked rows that a decision was made on. */
export interface Loaded {
  readonly sessions: readonly SessionRecord[]
  readonly runs: readonly RunColumns[]
  readonly entries: readonly EntryRecord[]
}

/** The numbers of everything a unit names: known from what was loaded, looked up, or new. */
export interface RowNumbers {
  /** Ids of the sessions that were loaded, and so exist. */
  readonly loaded: ReadonlySet<string>
  /** Chunks that are stored and not to be written. */
  readonly stored: ReadonlySet<string>
  chunk(id: string): number
  session(id: string): number
}

export async function numberRows(
  connection: Connection,
  unit: Unit,
  loaded: Loaded,
  careful: boolean,
): Promise<RowNumbers> {
  const chunks = new Map<string, number>()
  const sessions = new Map<string, number>()
  for (const row of loaded.sessions) {
    sessions.set(fromText(row.id), row.n)
    if (row.head !== null && row.head_n !== null) chunks.set(row.head, row.head_n)
  }
  const wanted = new Set<string>(careful ? unit.chunks.keys() : [])
  for (const { previous } of unit.chunks.values()) if (previous !== null) wanted.add(previous)
  for (const { head } of unit.written.sessions) if (head !== null) wanted.add(head)
  const unknown = [...wanted].filter(id => !chunks.has(id) && (careful || !unit.chunks.has(id)))
  for (const { id, n } of await findChunks(connection, unknown)) chunks.set(id, n)
  const stored = new Set(chunks.keys())

  const newSessions = new Set([...unit.chunks.values()].map(chunk => chunk.session))
  for (const { id } of unit.written.sessions) newSessions.add(id)
  await connection.numbers.reserve(connection, unit.chunks.size + newSessions.size)
  for (const id of unit.chunks.keys()) if (!chunks.has(id)) chunks.set(id, connection.numbers.take())
  for (const id of newSessions) if (!sessions.has(id)) sessions.set(id, connection.numbers.take())

  return {
    loaded: new Set(loaded.sessions.map(row => fromText(row.id))),
    stored,
    chunk: id => chunks.get(id) ?? missing(id),
    session: id => sessions.get(id) as number,
  }
}

async function findChunks(
  connection: Connection,
  ids: readonly string[],
): Promise<{ id: string; n: number }[]> {
  if (ids.length === 0) return []
  return connection.query(
    `SELECT encode(id, 'hex') AS id, n FROM openrath.chunk
     WHERE id IN (SELECT decode(given, 'hex') FROM unnest($1::text[]) AS given)`,
    [ids],
  )
}

function missing(id: string): never {
  throw new RathError('chunk-missing', `${id} is not stored, although something refers to it.`)
}
