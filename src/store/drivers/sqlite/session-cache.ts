import type { Touched, Unit } from '../../driver.ts'
import type { SessionRow } from '../../spec.ts'
import type { Database } from './database.ts'
import { fromSession, type Sqlite, sessionColumns, toSessionRow } from './rows.ts'
import { folded } from './tail.ts'

/** A session row with the small numbers behind it. */
export interface NumberedSession {
  readonly row: SessionRow
  readonly n: number
  /** Of its newest chunk. */
  readonly head: number | null
}

/** The same here, where it follows what is written. */
interface Remembered extends NumberedSession {
  row: SessionRow
  head: number | null
}

/** What was decided, and the sessions it was decided on. */
export interface Decided {
  readonly sessions: readonly NumberedSession[]
  readonly unit: Unit
}

const mostRows = 1000
const mostFresh = 10_000

/**
 * What this connection has read and written, so that who appends again and again has nothing to read. Whoever changes a session or a
 * tag takes the next number of the table of chunks: while the newest is the one that is remembered here, all the rest holds, too.
 */
export class SessionCache {
  readonly #db: Database
  readonly #rows = new Map<string, Remembered>()
  readonly #fresh = new Set<number>()
  #newest: number | undefined
  #folded = 0

  constructor(db: Database) {
    this.#db = db
  }

  /** The one session that a decision needs, if it needs nothing else and the session is remembered. */
  only({ sessions, runs, entries }: Touched): NumberedSession | undefined {
    if (!Array.isArray(sessions) || sessions.length !== 1 || !isNone(runs) || !isNone(entries))
      return undefined
    return this.#rows.get(sessions[0])
  }

  /** Inside a transaction: whether what was remembered holds. What does not is forgotten. */
  check(): boolean {
    const found = this.#db
      .sql(`SELECT (SELECT coalesce(max(n), 0) FROM chunk) AS newest, ${folded} AS folded`)
      .get() as { newest: number; folded: number }
    const same = found.newest === this.#newest
    if (!same) this.forget()
    this.#newest = found.newest
    this.#folded = found.folded
    return same
  }

  load(ids: Iterable<string>): NumberedSession[] {
    const found: NumberedSession[] = []
    for (const id of ids) {
      const session = this.#rows.get(id) ?? this.#read(id)
      if (session !== undefined) found.push(session)
    }
    return found
  }

  /** The number that the next row in the table of chunks gets, where nobody else has taken it. */
  get next(): number {
    return (this.#newest ?? 0) + 1
  }

  get tailLength(): number {
    return (this.#newest ?? 0) - this.#folded
  }

  folded(): void {
    this.#folded = this.#newest ?? 0
  }

  took(n: number): void {
    this.#newest = n
  }

  /** Whether a chunk was written here for the first time and nothing has been written behind it: what comes next is then new. */
  isFresh(chunk: number | null): boolean {
    return chunk !== null && this.#fresh.has(chunk)
  }

  /** A chunk that was not stored before has been written. */
  recorded(n: number, previous: number | null): void {
    if (previous !== null) this.#fresh.delete(previous)
    if (this.#fresh.size >= mostFresh) this.#fresh.clear()
    this.#fresh.add(n)
  }

  /** A session was extended: only what that writes changes, the rest of a row never does. */
  moved({ id, head, length, updated }: SessionRow, chunk: number | null): void {
    const known = this.#rows.get(id)
    if (known === undefined) return
    // A copy, because callers are given the other.
    known.row = { ...known.row, head, length, updated }
    known.head = chunk
  }

  /** After a transaction that came to nothing, or one that changed more than heads. */
  readonly forget = (): void => {
    this.#rows.clear()
    this.#fresh.clear()
    this.#newest = undefined
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

function isNone(rows: Iterable<unknown>): boolean {
  return Array.isArray(rows) && rows.length === 0
}
