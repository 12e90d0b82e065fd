import type { Touched, Unit } from '../../driver.ts'
import type { SessionRow } from '../../spec.ts'
import type { RowNumbers } from './row-numbers.ts'
import type { SessionRecord } from './rows.ts'

/** A session as this process last wrote it. */
export interface KnownSession {
  readonly n: number
  /** Number of its newest chunk. */
  readonly head: number | null
  /** As the server keeps them, in its order. */
  readonly tags: readonly string[] | null
  readonly row: SessionRow
}

const mostSessions = 1000
/** Who met another writer will meet it again. */
const commitsAfterMiss = 100

/** Sessions that were written here, for whoever goes on writing them. Others may have changed them since: the server is asked to compare. */
export class SessionMemory {
  readonly #known = new Map<string, KnownSession>()
  #silent = 0

  /** The one session that is touched, and nothing besides, if it is known. */
  only({ sessions, runs, entries }: Touched): KnownSession | undefined {
    if (this.#silent > 0) {
      this.#silent--
      return undefined
    }
    const [id, ...others] = sessions
    if (id === undefined || others.length + [...runs].length + [...entries].length > 0) return undefined
    return this.#known.get(id)
  }

  keep(session: KnownSession): void {
    if (!this.#known.has(session.row.id) && this.#known.size >= mostSessions) {
      this.#known.delete(this.#known.keys().next().value as string)
    }
    this.#known.set(session.row.id, session)
  }

  /** What a transaction has loaded and written. */
  learn(unit: Unit, loaded: readonly SessionRecord[], numbers: RowNumbers): void {
    if (unit.tags.size > 0 || unit.deletedSessions.size > 0) {
      this.#known.clear()
      return
    }
    const tags = new Map(loaded.map(record => [record.n, record.tags]))
    for (const row of unit.written.sessions) {
      const n = numbers.session(row.id)
      const head = row.head === null ? null : numbers.chunk(row.head)
      this.keep({ n, head, tags: tags.get(n) ?? null, row })
    }
  }

  /** A session was not what it was believed to be. */
  miss({ row }: KnownSession): void {
    this.#known.delete(row.id)
    this.#silent = commitsAfterMiss
  }
}
