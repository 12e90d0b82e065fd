import { RathError } from '../../../base/errors.ts'
import { namedBy } from '../../../session/lineage.ts'
import type { BlobRow, ChunkRow, NewEntryRow, Rows, RunRowWrite } from '../../driver.ts'
import { changedRun, keepSessions, notHeld, outcomeRefusal } from '../../run-decisions.ts'
import type { RunRow, SessionRow } from '../../spec.ts'
import type { Database } from './database.ts'
import {
  fromSession,
  numberOfChunk,
  type Sqlite,
  sessionColumns,
  toBytes,
  toEntryRow,
  toRunRow,
  toSessionRow,
} from './rows.ts'

/** A session's row with the small numbers behind it. */
interface Numbered {
  readonly row: SessionRow
  readonly n: number
  /** Of its newest chunk. */
  readonly head: number | null
}

const mostRemembered = 1000

/**
 * The rows of a store inside a transaction: what a decision reads and changes is read and changed in the file, there and then. Sessions that
 * this connection has read or written are remembered while no other connection commits, so that a session which grows is not read again.
 */
export class Transaction implements Rows {
  now = 0
  readonly #db: Database
  readonly #sessions = new Map<string, Numbered>()
  #version: number | undefined

  constructor(db: Database) {
    this.#db = db
  }

  /** Done when it returns, unless another process is writing. */
  commit(decide: (rows: Rows) => void, done: () => void): Promise<void> | undefined {
    const work = () =>
      this.#db.locked(() => {
        const { version } = this.#db
        if (version !== this.#version) this.forget()
        this.#version = version
        this.now = Date.now()
        decide(this)
      })
    return this.#db.attempt(work, this.forget, done)
  }

  /** After a transaction that came to nothing, or when more than the heads of sessions has changed. */
  readonly forget = (): void => {
    this.#sessions.clear()
  }

  session(id: string): SessionRow | undefined {
    return this.#session(id)?.row
  }

  setSession(row: SessionRow, chunks: readonly ChunkRow[]): void {
    const known = this.#session(row.id)
    const n = known?.n ?? this.#insertSession(row)
    let head = known?.head ?? null
    let newest = known?.row.head ?? null
    let isRecorded = false
    for (const chunk of chunks) {
      const previous = chunk.previous === newest ? head : this.#chunk(chunk.previous)
      const written = this.#insertChunk(chunk, previous, n, row.updated)
      head = written ?? this.#chunk(chunk.id)
      newest = chunk.id
      isRecorded = written !== undefined
    }
    if (newest !== row.head) {
      head = this.#chunk(row.head)
      isRecorded = false
    }
    this.#sql('UPDATE session SET head = ?, length = ?, updated = ? WHERE n = ?').run(
      head,
      row.length,
      row.updated,
      n,
    )
    if (!isRecorded) this.#mark(n)
    // Only what this writes has changed: the rest of a row never does, and callers were given the other.
    this.#remember({ row: known ? { ...known.row, ...movedBy(row) } : row, n, head })
  }

  deleteSession(id: string): void {
    const n = this.#session(id)?.n
    if (n === undefined) return
    this.#sql('DELETE FROM tag WHERE session = ?').run(n)
    this.#sql('DELETE FROM parent WHERE child = ?').run(n)
    this.#sql('DELETE FROM session WHERE n = ?').run(n)
    this.forget()
  }

  setTag(tag: string, session: string | null): void {
    if (session === null) this.#sql('DELETE FROM tag WHERE name = ?').run(tag)
    else this.#sql('INSERT OR REPLACE INTO tag SELECT ?, n FROM session WHERE id = ?').run(tag, session)
    this.forget()
  }

  addBlob({ id, bytes }: BlobRow): void {
    // Node 22 hands over no bytes as NULL.
    this.#sql(
      "INSERT INTO blob (id, written, bytes) VALUES (?, ?, coalesce(?, x'')) ON CONFLICT DO UPDATE SET written = excluded.written",
    ).run(toBytes(id), this.now, bytes)
  }

  run(id: string): RunRow | undefined {
    const row = this.#sql('SELECT * FROM run WHERE id = ?').get(id)
    return row && toRunRow(row as Sqlite)
  }

  setRun(run: RunRow): void {
    // A renewed lease is not a change that followers are told about.
    this.#sql(
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

  /** No row is read for an intent or an outcome: the statement that writes it says what it needs, and only a refusal is looked into. */
  commitRun(run: string, fence: number | null, writes: readonly RunRowWrite[]): unknown {
    if (!this.#isHeld(run, fence)) return notHeld(this.run(run), run, fence)
    let refusal = keepSessions(this, writes)
    let isReleased = false
    for (const write of writes) {
      if (write.kind === 'put') continue
      if (isReleased) return refusal ?? notHeld(this.run(run), run, fence)
      if (write.kind === 'intend') {
        if (!this.#intend(run, write.entry, JSON.stringify(write.keeps))) continue
      } else if (write.kind === 'conclude') {
        if (!this.#conclude(run, write)) {
          refusal ??= this.#whyNot(run, write)
          continue
        }
      } else {
        this.setRun(changedRun(this.run(run) as RunRow, write.change, this.now))
        isReleased = write.change.release ?? false
        continue
      }
      for (const payload of write.payloads) this.addBlob(payload)
    }
    return refusal
  }

  #isHeld(run: string, fence: number | null): boolean {
    const sql =
      fence === null
        ? 'SELECT 1 FROM run WHERE id = ? AND ? IS NULL'
        : 'SELECT 1 FROM run WHERE id = ? AND fence = ? AND owner IS NOT NULL'
    return this.#sql(sql).get(run, fence) !== undefined
  }

  #intend(run: string, { key, occurrence, kind, request }: NewEntryRow, blobs: string): boolean {
    const { changes } = this.#sql(
      'INSERT INTO entry (run, key, occurrence, kind, request, intended, blobs) VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING',
    ).run(run, key, occurrence, kind, request, this.now, blobs)
    return changes === 1
  }

  #conclude(run: string, write: Extract<RunRowWrite, { kind: 'conclude' }>): boolean {
    const { key, occurrence, outcome, of = '' } = write
    const open = "run = ? AND key = ? AND occurrence = ? AND outcome IS NULL AND ? IN ('', kind)"
    const named = [run, key, occurrence, of] as const
    const { changes } =
      write.keeps.length === 0
        ? this.#sql(`UPDATE entry SET outcome = ?, concluded = ? WHERE ${open}`).run(
            outcome,
            this.now,
            ...named,
          )
        : this.#sql(
            `UPDATE entry SET outcome = ?, concluded = ?, blobs = (
               SELECT json_group_array(value) FROM (SELECT value FROM json_each(blobs) UNION ALL SELECT value FROM json_each(?))
             ) WHERE ${open}`,
          ).run(outcome, this.now, JSON.stringify(write.keeps), ...named)
    return changes === 1
  }

  #whyNot(run: string, write: Extract<RunRowWrite, { kind: 'conclude' }>): unknown {
    const { key, occurrence } = write
    const entry = this.#sql('SELECT * FROM entry WHERE run = ? AND key = ? AND occurrence = ?').get(
      run,
      key,
      occurrence,
    )
    return outcomeRefusal({ run, key, occurrence }, entry && toEntryRow(entry as Sqlite), write)
  }

  #session(id: string): Numbered | undefined {
    const known = this.#sessions.get(id)
    if (known) return known
    const found = this.#sql(`SELECT ${sessionColumns} ${fromSession} WHERE session.id = ?`).get(id) as
      | Sqlite
      | undefined
    if (found === undefined) return undefined
    const row = toSessionRow(found)
    // Callers are given it, too.
    Object.freeze(row.tags)
    return this.#remember({ row, n: found.n as number, head: found.head_n as number | null })
  }

  #remember(session: Numbered): Numbered {
    const { id } = session.row
    if (!this.#sessions.has(id) && this.#sessions.size >= mostRemembered)
      this.#sessions.delete(this.#sessions.keys().next().value as string)
    this.#sessions.set(id, session)
    return session
  }

  #insertSession(row: SessionRow): number {
    const { lastInsertRowid } = this.#sql(
      'INSERT INTO session (id, head, length, branch, lineage, created, updated) VALUES (?, NULL, 0, ?, ?, ?, ?)',
    ).run(row.id, JSON.stringify(row.branch), JSON.stringify(row.lineage), row.created, row.updated)
    const n = Number(lastInsertRowid)
    for (const parent of namedBy(row.lineage)) {
      this.#sql('INSERT OR IGNORE INTO parent (parent, child) VALUES (?, ?)').run(parent, n)
    }
    return n
  }

  /** Its number; undefined when it was stored before. */
  #insertChunk(
    chunk: ChunkRow,
    previous: number | null,
    session: number,
    written: number,
  ): number | undefined {
    const { changes, lastInsertRowid } = this.#sql(
      `INSERT INTO chunk (id, previous, position, session, stored, body) VALUES (unhex(?), ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING`,
    ).run(chunk.id, previous, chunk.index, session, written, chunk.body)
    if (changes === 0) return undefined
    const n = Number(lastInsertRowid)
    for (const blob of chunk.blobs) {
      this.#sql('INSERT OR IGNORE INTO chunk_blob (chunk, blob) VALUES (?, ?)').run(n, toBytes(blob))
    }
    return n
  }

  #chunk(id: string | null): number | null {
    if (id === null) return null
    const found = this.#sql(numberOfChunk).get(id) as { n: number } | undefined
    if (found) return found.n
    throw new RathError('chunk-missing', `Chunk ${id} is not stored, although something refers to it.`)
  }

  /** A row that is not a chunk tells followers of a session that changed without one, by its number below zero. */
  #mark(session: number): void {
    this.#sql("INSERT INTO chunk (id, position, session, stored, body) VALUES (x'', 0, ?, ?, '')").run(
      -session,
      this.now,
    )
  }

  #sql(text: string) {
    return this.#db.sql(text)
  }
}

/** The number of the next change of a run, inside a transaction. */
export const nextChange = '(SELECT coalesce(max(changed), 0) + 1 FROM run)'

function movedBy({ head, length, updated }: SessionRow): Pick<SessionRow, 'head' | 'length' | 'updated'> {
  return { head, length, updated }
}
