import type { Database } from './database.ts'

export type NameKind = 'scope' | 'category' | 'lane' | 'series'

/** Scopes, categories, lanes and series as small numbers. 0 is none. */
export class Names {
  readonly #db: Database
  readonly #known = new Map<string, number>()
  readonly #texts = new Map<number, string>()

  constructor(db: Database) {
    this.#db = db
  }

  /** Its number, given out when it has none; inside a write. */
  number(kind: NameKind, text: string): number {
    const found = this.find(kind, text)
    if (found !== 0) return found
    this.#db.run('INSERT INTO name (kind, text) VALUES (?, ?)', kind, text)
    return this.find(kind, text)
  }

  /** Its number, 0 when nothing was ever called that. */
  find(kind: NameKind, text: string): number {
    if (text === '') return 0
    const key = `${kind} ${text}`
    const known = this.#known.get(key)
    if (known !== undefined) return known
    const n = this.#db.get('SELECT n FROM name WHERE kind = ? AND text = ?', kind, text)?.n as
      | number
      | undefined
    if (n === undefined) return 0
    this.#keep(key, n, text)
    return n
  }

  text(n: number): string {
    if (n === 0) return ''
    const known = this.#texts.get(n)
    if (known !== undefined) return known
    const row = this.#db.get('SELECT kind, text FROM name WHERE n = ?', n)
    const text = (row?.text as string | undefined) ?? ''
    if (row) this.#keep(`${row.kind} ${text}`, n, text)
    return text
  }

  /** One more than the highest number. */
  get size(): number {
    return ((this.#db.get('SELECT max(n) AS n FROM name')?.n as number | null) ?? 0) + 1
  }

  /** The numbers of a scope and of every scope below it. */
  scopesUnder(scope: string): number[] {
    const rows = this.#db.all(
      `SELECT n FROM name WHERE kind = 'scope' AND (text = ?1 OR (text >= ?1 || '/' AND text < ?1 || '0'))`,
      scope,
    )
    return rows.map(row => row.n as number)
  }

  /** What was given out in a transaction that came to nothing is unknown again. */
  clear(): void {
    this.#known.clear()
    this.#texts.clear()
  }

  #keep(key: string, n: number, text: string): void {
    if (this.#texts.size >= mostKept) this.clear()
    this.#known.set(key, n)
    this.#texts.set(n, text)
  }
}

const mostKept = 10_000
