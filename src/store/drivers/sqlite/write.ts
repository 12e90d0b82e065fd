import { RathError } from '../../../base/errors.ts'
import type { ChunkRow, Unit } from '../../driver.ts'
import type { SessionRow } from '../../spec.ts'
import type { Database } from './database.ts'
import { toBytes } from './rows.ts'
import { type NumberedSession, type SessionCache, Stale } from './session-cache.ts'

/** Writes what a unit of work decided. Runs inside the transaction that loaded it, with the sessions that were loaded. */
export function writeUnit(
  db: Database,
  unit: Unit,
  loaded: readonly NumberedSession[],
  cache: SessionCache,
): void {
  const { sessions, runs, entries } = unit.written
  const now = Date.now()
  for (const blob of unit.blobs.values()) {
    db.sql(
      'INSERT INTO blob (id, written, bytes) VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET written = excluded.written',
    ).run(toBytes(blob.id), now, blob.bytes)
  }
  const numbers = new Numbers(db, loaded)
  for (const row of sessions) numbers.session(row.id, () => insertSession(db, row))
  const recorded = new Set<number>()
  for (const chunk of unit.chunks.values()) {
    if (writeChunk(db, chunk, numbers, now)) recorded.add(numbers.session(chunk.session))
  }
  for (const row of sessions) updateSession(db, row, numbers, recorded)
  cache.update(unit, sessions, id => numbers.chunk(id))
  for (const id of unit.deletedSessions) deleteSession(db, id)
  for (const [tag, id] of unit.tags) {
    db.sql(
      'UPDATE session SET version = version + 1 WHERE id = ? OR n = (SELECT session FROM tag WHERE name = ?)',
    ).run(id, tag)
    if (id === null) db.sql('DELETE FROM tag WHERE name = ?').run(tag)
    else db.sql('INSERT OR REPLACE INTO tag SELECT ?, n FROM session WHERE id = ?').run(tag, id)
  }
  for (const run of runs) {
    db.sql(
      `INSERT INTO run (id, status, owner, fence, lease_until, input, output, data, created, updated)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
       ON CONFLICT (id) DO UPDATE SET status = excluded.status, owner = excluded.owner, fence = excluded.fence,
         lease_until = excluded.lease_until, output = excluded.output, data = excluded.data, updated = excluded.updated`,
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

/** The small numbers behind ids, looked up at most once in a transaction. */
class Numbers {
  readonly #db: Database
  readonly #chunks = new Map<string, number>()
  readonly #sessions = new Map<string, number>()
  readonly #versions = new Map<string, number>()

  constructor(db: Database, sessions: readonly NumberedSession[]) {
    this.#db = db
    for (const { row, n, head, version } of sessions) {
      this.#sessions.set(row.id, n)
      this.#versions.set(row.id, version)
      if (row.head !== null && head !== null) this.#chunks.set(row.head, head)
    }
  }

  chunk(id: string): number {
    return this.#find(this.#chunks, id, () =>
      this.#db.sql('SELECT n FROM chunk WHERE id = ?').get(toBytes(id)),
    )
  }

  setChunk(id: string, n: number): void {
    this.#chunks.set(id, n)
  }

  session(id: string, insert?: () => number): number {
    return this.#find(
      this.#sessions,
      id,
      () => this.#db.sql('SELECT n FROM session WHERE id = ?').get(id) ?? (insert && { n: insert() }),
    )
  }

  /** Of a session that was there before this transaction; a new one begins with 0. */
  version(id: string): number {
    return this.#versions.get(id) ?? 0
  }

  #find(known: Map<string, number>, id: string, look: () => unknown): number {
    const cached = known.get(id)
    if (cached !== undefined) return cached
    const row = look() as { n: number } | undefined
    if (row === undefined)
      throw new RathError('chunk-missing', `${id} is not stored, although something refers to it.`)
    known.set(id, row.n)
    return row.n
  }
}

/** False when it was there already. */
function writeChunk(db: Database, chunk: ChunkRow, numbers: Numbers, now: number): boolean {
  const result = db
    .sql(
      'INSERT INTO chunk (id, previous, position, session, written, body) VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING',
    )
    .run(
      toBytes(chunk.id),
      chunk.previous === null ? null : numbers.chunk(chunk.previous),
      chunk.index,
      numbers.session(chunk.session),
      now,
      chunk.body,
    )
  if (result.changes === 0) return false
  const n = Number(result.lastInsertRowid)
  numbers.setChunk(chunk.id, n)
  for (const blob of chunk.blobs) {
    db.sql('INSERT OR IGNORE INTO chunk_blob (chunk, blob) VALUES (?, ?)').run(n, toBytes(blob))
  }
  return true
}

function updateSession(db: Database, row: SessionRow, numbers: Numbers, recorded: ReadonlySet<number>): void {
  const n = numbers.session(row.id)
  const { changes } = db
    .sql(
      'UPDATE session SET head = ?, length = ?, updated = ?, version = version + 1 WHERE n = ? AND version = ?',
    )
    .run(
      row.head === null ? null : numbers.chunk(row.head),
      row.length,
      row.updated,
      n,
      numbers.version(row.id),
    )
  if (changes !== 1) throw new Stale()
  // Followers learn of a change from the chunks it recorded; one without has to be told.
  if (!recorded.has(n))
    db.sql('INSERT INTO touched (session, after) SELECT ?, coalesce(max(n), 0) FROM chunk').run(n)
}

function insertSession(db: Database, row: SessionRow): number {
  const { lastInsertRowid } = db
    .sql(
      'INSERT INTO session (id, head, length, branch, lineage, created, updated, version) VALUES (?, NULL, 0, ?, ?, ?, ?, 0)',
    )
    .run(row.id, JSON.stringify(row.branch), JSON.stringify(row.lineage), row.created, row.updated)
  const n = Number(lastInsertRowid)
  for (const parent of row.lineage.parents) {
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
