import { RathError } from '../../../base/errors.ts'
import { namedBy } from '../../../session/lineage.ts'
import type { ChunkRow, Unit } from '../../driver.ts'
import type { SessionRow } from '../../spec.ts'
import { insertChunk } from './append.ts'
import type { Database } from './database.ts'
import { toBytes } from './rows.ts'
import type { Decided, NumberedSession, SessionCache } from './session-cache.ts'
import { findChunk, fold, longestTail } from './tail.ts'

/**
 * Writes what a unit of work decided. Runs inside the transaction that loaded it, with the sessions that were loaded; the cache has been
 * checked in it.
 */
export function writeUnit(db: Database, { sessions: loaded, unit }: Decided, cache: SessionCache): void {
  const { sessions, runs, entries } = unit.written
  const now = Date.now()
  const first = cache.next
  for (const blob of unit.blobs.values()) {
    // Node 22 hands over no bytes as NULL.
    db.sql(
      "INSERT INTO blob (id, written, bytes) VALUES (?, ?, coalesce(?, x'')) ON CONFLICT DO UPDATE SET written = excluded.written",
    ).run(toBytes(blob.id), now, blob.bytes)
  }
  const numbers = new Numbers(db, cache, loaded)
  const inserted = new Set<number>()
  for (const row of sessions) {
    numbers.session(row.id, () => {
      const n = insertSession(db, row)
      inserted.add(n)
      return n
    })
  }
  const writer = { db, cache, numbers, unit, now, inserted, newest: new Map<number, number>() }
  for (const chunk of unit.chunks.values()) writeChunk(writer, chunk)
  for (const row of sessions) moveSession(writer, row)
  for (const id of unit.deletedSessions) deleteSession(db, id)
  for (const [tag, id] of unit.tags) {
    if (id === null) db.sql('DELETE FROM tag WHERE name = ?').run(tag)
    else db.sql('INSERT OR REPLACE INTO tag SELECT ?, n FROM session WHERE id = ?').run(tag, id)
  }
  if (cache.tailLength >= longestTail) foldNow(db, cache)
  if (unit.tags.size > 0 || unit.deletedSessions.size > 0) {
    if (cache.next === first) mark(db, cache, 0, now)
    cache.forget()
  }
  for (const run of runs) {
    // A renewed lease is not a change that followers are told about.
    db.sql(
      `INSERT INTO run (id, status, owner, fence, lease_until, input, output, data, created, updated, queue, priority, not_before,
         cancel, changed)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ${nextChange})
       ON CONFLICT (id) DO UPDATE SET
         changed = iif(status = excluded.status AND owner IS excluded.owner AND fence = excluded.fence
           AND output IS excluded.output AND data = excluded.data AND cancel IS excluded.cancel, changed, excluded.changed),
         status = excluded.status, owner = excluded.owner, fence = excluded.fence, lease_until = excluded.lease_until,
         output = excluded.output, data = excluded.data, updated = excluded.updated, cancel = excluded.cancel`,
    ).run(
      run.id,
      run.status,
      run.owner,
      run.fence,
      run.leaseUntil,
      run.input,
      run.output,
      JSON.stringify(run.data),
      run.created,
      run.updated,
      run.queue?.name ?? null,
      run.queue?.priority ?? 0,
      run.queue?.notBefore ?? 0,
      run.cancel ? JSON.stringify(run.cancel) : null,
    )
  }
  for (const entry of entries) {
    db.sql(
      `INSERT INTO entry (run, key, occurrence, kind, request, outcome, intended, concluded, blobs)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
       ON CONFLICT (run, key, occurrence) DO UPDATE SET outcome = excluded.outcome, concluded = excluded.concluded,
         blobs = excluded.blobs`,
    ).run(
      entry.run,
      entry.key,
      entry.occurrence,
      entry.kind,
      entry.request,
      entry.outcome,
      entry.intendedAt,
      entry.concludedAt,
      JSON.stringify(entry.blobs),
    )
  }
}

/** The number of the next change of a run, inside a transaction. */
export const nextChange = '(SELECT coalesce(max(changed), 0) + 1 FROM run)'

/** What is under way in one transaction. */
interface Writer {
  readonly db: Database
  readonly cache: SessionCache
  readonly numbers: Numbers
  readonly unit: Unit
  readonly now: number
  /** Sessions that were not there before. */
  readonly inserted: ReadonlySet<number>
  /** By session, the newest chunk that it recorded here. */
  readonly newest: Map<number, number>
}

/** Looking for chunks in the tail is slower than folding it, if there are more than these to look for. */
const fewLooks = 4

/** The small numbers behind ids, looked up at most once in a transaction. */
class Numbers {
  readonly #db: Database
  readonly #cache: SessionCache
  readonly #chunks = new Map<string, number>()
  readonly #sessions = new Map<string, number>()
  /** What this transaction writes has numbers from here on, and is in the map. */
  readonly #first: number
  #looks = 0

  constructor(db: Database, cache: SessionCache, sessions: readonly NumberedSession[]) {
    this.#db = db
    this.#cache = cache
    this.#first = cache.next
    for (const { row, n, head } of sessions) {
      this.#sessions.set(row.id, n)
      if (row.head !== null && head !== null) this.#chunks.set(row.head, head)
    }
  }

  chunk(id: string): number {
    return this.#chunks.get(id) ?? this.stored(id) ?? missing(id)
  }

  /** A chunk from before this transaction; undefined when it is not there. */
  stored(id: string): number | undefined {
    if (++this.#looks === fewLooks && this.#cache.tailLength > 0) foldNow(this.#db, this.#cache)
    const n = findChunk(this.#db, id, this.#first)
    if (n !== undefined) this.#chunks.set(id, n)
    return n
  }

  setChunk(id: string, n: number): void {
    this.#chunks.set(id, n)
  }

  session(id: string, insert?: () => number): number {
    const known = this.#sessions.get(id)
    if (known !== undefined) return known
    const found = this.#db.sql('SELECT n FROM session WHERE id = ?').get(id) as { n: number } | undefined
    const n = found?.n ?? insert?.() ?? missing(id)
    this.#sessions.set(id, n)
    return n
  }
}

function foldNow(db: Database, cache: SessionCache): void {
  fold(db)
  cache.folded()
}

function missing(id: string): never {
  throw new RathError('chunk-missing', `${id} is not stored, although something refers to it.`)
}

/** Behind a chunk that is fresh nothing can be stored already, so there is nothing to look for. */
function writeChunk({ db, cache, numbers, unit, now, newest }: Writer, chunk: ChunkRow): void {
  const previous = chunk.previous === null ? null : numbers.chunk(chunk.previous)
  if (!cache.isFresh(previous) && numbers.stored(chunk.id) !== undefined) return
  const session = numbers.session(chunk.session)
  const n = cache.next
  const written = unit.session(chunk.session)?.updated ?? now
  db.sql(insertChunk).run(n, chunk.id, previous, chunk.index, session, written, chunk.body)
  cache.took(n)
  cache.recorded(n, previous)
  numbers.setChunk(chunk.id, n)
  newest.set(session, n)
  for (const blob of chunk.blobs) {
    db.sql('INSERT OR IGNORE INTO chunk_blob (chunk, blob) VALUES (?, ?)').run(n, toBytes(blob))
  }
}

/** The head of a session is the newest chunk in the tail that it recorded; one that it did not record here goes into its row. */
function moveSession({ db, cache, numbers, now, inserted, newest }: Writer, row: SessionRow): void {
  const session = numbers.session(row.id)
  const head = row.head === null ? null : numbers.chunk(row.head)
  if (head === null || newest.get(session) !== head) {
    // Nothing that it recorded before may be left in the tail, where it would count for more than the row.
    if (!inserted.has(session) || newest.has(session)) foldNow(db, cache)
    db.sql('UPDATE session SET head = ?, length = ?, updated = ? WHERE n = ?').run(
      head,
      row.length,
      row.updated,
      session,
    )
    mark(db, cache, -session, now)
  }
  cache.moved(row, head)
}

/** A row that is no chunk takes a number: of a session, below zero, that was changed without one, or of none. */
function mark(db: Database, cache: SessionCache, session: number, now: number): void {
  const n = cache.next
  db.sql(insertChunk).run(n, '', null, 0, session, now, '')
  cache.took(n)
}

function insertSession(db: Database, row: SessionRow): number {
  const { lastInsertRowid } = db
    .sql(
      'INSERT INTO session (id, head, length, branch, lineage, created, updated) VALUES (?, NULL, 0, ?, ?, ?, ?)',
    )
    .run(row.id, JSON.stringify(row.branch), JSON.stringify(row.lineage), row.created, row.updated)
  const n = Number(lastInsertRowid)
  for (const parent of namedBy(row.lineage)) {
    db.sql('INSERT OR IGNORE INTO parent (parent, child) VALUES (?, ?)').run(parent, n)
  }
  return n
}

function deleteSession(db: Database, id: string): void {
  const row = db.sql('SELECT n FROM session WHERE id = ?').get(id) as { n: number } | undefined
  if (row === undefined) return
  db.sql('DELETE FROM tag WHERE session = ?').run(row.n)
  db.sql('DELETE FROM parent WHERE child = ?').run(row.n)
  db.sql('DELETE FROM session WHERE n = ?').run(row.n)
}
