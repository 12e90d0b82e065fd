import type { Unit } from '../../driver.ts'
import type { SessionRow } from '../../spec.ts'
import type { Database } from './database.ts'
import { fromSession, type Sqlite, sessionColumns, toSessionRow } from './rows.ts'

/** A session row with the small numbers behind it. */
export interface NumberedSession {
  readonly row: SessionRow
  readonly n: number
  /** Of its newest chunk. */
  readonly head: number | null
}

const mostRows = 1000

/**
 * Session rows as this connection last saw them, so that who appends to a session again and again does not read its row each time.
 * They hold while no other connection has written: SQLite counts that. Only for use inside a transaction that may write.
 */
export class SessionCache {
  readonly #db: Database
  readonly #rows = new Map<string, NumberedSession>()
  #version: number | undefined

  constructor(db: Database) {
    this.#db = db
  }

  load(ids: Iterable<string>): NumberedSession[] {
    const { data_version } = this.#db.sql('PRAGMA data_version').get() as { data_version: number }
    if (data_version !== this.#version) this.clear()
    this.#version = data_version
    const found: NumberedSession[] = []
    for (const id of ids) {
      const session = this.#rows.get(id) ?? this.#read(id)
      if (session !== undefined) found.push(session)
    }
    return found
  }

  /** Follows what was written: only what an update writes, because the rest of a row never changes. */
  update(unit: Unit, sessions: readonly SessionRow[], numberOf: (chunk: string) => number): void {
    if (unit.tags.size > 0 || unit.deletedSessions.size > 0) {
      this.clear()
      return
    }
    for (const { id, head, length, updated } of sessions) {
      const known = this.#rows.get(id)
      if (known === undefined) continue
      const row = { ...known.row, head, length, updated }
      this.#rows.set(id, { row, n: known.n, head: head === null ? null : numberOf(head) })
    }
  }

  /** Also for a transaction that failed after `update`. */
  clear(): void {
    this.#rows.clear()
  }

  #read(id: string): NumberedSession | undefined {
    const found = this.#db.sql(`SELECT ${sessionColumns} ${fromSession} WHERE session.id = ?`).get(id) as
      | Sqlite
      | undefined
    if (found === undefined) return undefined
    const row = toSessionRow(found)
    // Callers are given it, too.
    Object.freeze(row.tags)
    const session = { row, n: found.n as number, head: found.head_n as number | null }
    if (this.#rows.size >= mostRows) this.#rows.delete(this.#rows.keys().next().value as string)
    this.#rows.set(id, session)
    return session
  }
}
