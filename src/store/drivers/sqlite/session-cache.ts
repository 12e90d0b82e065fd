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
  /** Counts the changes of the row and of its tags. */
  readonly version: number
}

/** A session was not as this connection remembered it. The transaction starts over and reads. */
export class Stale extends Error {}

const mostRows = 1000
/** Who met another writer will meet it again. */
const readsAfterStale = 100

/**
 * Session rows as this connection last saw them, so that who appends to a session again and again does not read its row each time.
 * Another connection may have changed them since: whoever decides on one writes it, or confirms it, by its version.
 */
export class SessionCache {
  readonly #db: Database
  readonly #rows = new Map<string, NumberedSession>()
  #reads = 0

  constructor(db: Database) {
    this.#db = db
  }

  load(ids: Iterable<string>): NumberedSession[] {
    if (this.#reads > 0) {
      this.#reads--
      this.clear()
    }
    const found: NumberedSession[] = []
    for (const id of ids) {
      const session = this.#rows.get(id) ?? this.#read(id)
      if (session !== undefined) found.push(session)
    }
    return found
  }

  /** Throws when a session that a decision was made on, but that it did not write, is not what it was. */
  confirm(loaded: readonly NumberedSession[], unit: Unit): void {
    for (const { row, n, version } of loaded) {
      if (unit.changedSessions.has(row.id)) continue
      const same = this.#db.sql('SELECT 1 FROM session WHERE n = ? AND version = ?').get(n, version)
      if (same === undefined) throw new Stale()
    }
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
      const version = known.version + 1
      this.#rows.set(id, { row, n: known.n, head: head === null ? null : numberOf(head), version })
    }
  }

  /** After a transaction that came to nothing, also one that failed after `update`. Worth another try when it was stale. */
  undo(error: unknown): 'again' | undefined {
    this.clear()
    if (!(error instanceof Stale)) return undefined
    this.#reads = readsAfterStale
    return 'again'
  }

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
    const session = {
      row,
      n: found.n as number,
      head: found.head_n as number | null,
      version: found.version as number,
    }
    if (this.#rows.size >= mostRows) this.#rows.delete(this.#rows.keys().next().value as string)
    this.#rows.set(id, session)
    return session
  }
}
