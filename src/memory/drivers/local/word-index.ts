import { type Words, wordsOf } from '../../words.ts'
import { Columns } from './columns.ts'
import type { Database, Row } from './database.ts'
import type { PostingBuffer, Postings } from './postings.ts'

/** A range of entries whose words are in `posting`. */
export interface Segment {
  readonly n: number
  readonly first: number
  readonly last: number
  readonly level: number
  /** Entries that it held when it was written; some may have been forgotten since. */
  readonly docs: number
}

/** Columns of `entry` that the index holds in memory. */
const held =
  'e.scope, e.category, e.lane, e.series, e.place, e.rejected, e.scattered, e.length, e.at, e.expires'

/**
 * One process's view of the index. `sync`, inside a transaction, brings it to the state that the transaction sees, whoever wrote it. What
 * was written since the last merge is read change by change; after a merge by another process, the blocks that it wrote.
 */
export class WordIndex {
  columns = new Columns()
  segments: readonly Segment[] = []
  tail = new Map<string, Postings>()
  #tailDocs = new Set<number>()
  #seq = -1
  #generation = -1

  /** Forgets what was read in a transaction that came to nothing. */
  reset(): void {
    this.#seq = -1
    this.#generation = -1
  }

  sync(db: Database): void {
    const generation = numberIn(db, 'generation')
    if (generation !== this.#generation) this.#load(db, generation)
    const changes = `SELECT c.seq, c.n, ${held}, t.words FROM change c
      LEFT JOIN entry e ON e.n = c.n LEFT JOIN tail t ON t.n = c.n WHERE c.seq > ? ORDER BY c.seq`
    for (const row of db.iterate(changes, this.#seq)) {
      this.#seq = row.seq as number
      this.#apply(row)
    }
  }

  /** After a merge of this process: what was in the tail is in the segments now. */
  merged(db: Database): void {
    this.#generation = numberIn(db, 'generation')
    this.segments = segmentsIn(db)
    this.tail = new Map()
    this.#tailDocs = new Set()
  }

  get tailDocs(): number[] {
    return [...this.#tailDocs].sort((a, b) => a - b)
  }

  /** Adds the entries that have a word to a buffer, ascending. Forgotten ones may be among them. */
  lookUp(db: Database, word: string, into: PostingBuffer): void {
    for (const { n, first } of this.segments) {
      const row = db.get('SELECT count, bytes FROM posting WHERE segment = ? AND word = ?', n, word)
      if (row === undefined) continue
      into.reserve(row.count as number)
      into.decode(row.bytes as Uint8Array, first)
    }
    const late = this.tail.get(word)
    if (late === undefined) return
    for (const [i, doc] of late.docs.entries()) into.add(doc, late.counts[i] as number)
  }

  #load(db: Database, generation: number): void {
    this.segments = segmentsIn(db)
    const merged = numberIn(db, 'merged')
    if (this.#seq < merged) {
      if (this.#seq < 0) this.columns = new Columns()
      for (const row of db.iterate('SELECT n, bytes FROM block WHERE seq > ? ORDER BY n', this.#seq)) {
        this.columns.decodeBlock(row.n as number, row.bytes as Uint8Array)
      }
      this.#seq = merged
    }
    this.tail = new Map()
    this.#tailDocs = new Set()
    const late = `SELECT t.n, t.words FROM tail t WHERE t.n IN (SELECT n FROM change WHERE seq <= ?) ORDER BY t.n`
    for (const row of db.iterate(late, this.#seq)) this.#addToTail(row.n as number, row.words as string)
    this.#generation = generation
  }

  #apply(row: Row): void {
    const n = row.n as number
    if (row.scope === null) this.columns.remove(n)
    else this.columns.set(n, row)
    if (row.words !== null) this.#addToTail(n, row.words as string)
  }

  #addToTail(n: number, words: string): void {
    if (this.#tailDocs.has(n)) return
    this.#tailDocs.add(n)
    for (const line of words.split('\n')) {
      const space = line.lastIndexOf(' ')
      const word = line.slice(0, space)
      let postings = this.tail.get(word)
      if (postings === undefined) {
        postings = { docs: [], counts: [] }
        this.tail.set(word, postings)
      }
      postings.docs.push(n)
      postings.counts.push(Number(line.slice(space + 1)))
    }
  }
}

/** Counts are read back into sixteen bits. */
const mostCounted = 0xffff

/** A text's words as the tail keeps them, a line each: the word and how often. Labels are words that no text can have. */
export function tailWords(
  text: string,
  labels: readonly string[],
): { readonly words: string; readonly length: number } {
  const { terms } = wordsOf(text) satisfies Words
  const counts = new Map<string, number>()
  for (const term of terms) counts.set(term, (counts.get(term) ?? 0) + 1)
  for (const label of labels) counts.set(label, 1)
  const lines: string[] = []
  for (const [word, count] of counts) lines.push(`${word} ${Math.min(count, mostCounted)}`)
  return { words: lines.join('\n'), length: terms.length }
}

export function numberIn(db: Database, name: string): number {
  return Number(db.get('SELECT value FROM meta WHERE name = ?', name)?.value ?? 0)
}

export function setNumber(db: Database, name: string, value: number): void {
  db.run('INSERT OR REPLACE INTO meta VALUES (?, ?)', name, String(value))
}

function segmentsIn(db: Database): Segment[] {
  return db.all('SELECT n, first, last, level, docs FROM segment ORDER BY first') as unknown as Segment[]
}
