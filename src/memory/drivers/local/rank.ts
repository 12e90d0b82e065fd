import { fitOf, type Question, type Term as QuestionTerm, type WeighedPart, weigh } from '../../question.ts'
import { tuning } from '../../tuning.ts'
import { wordsOf } from '../../words.ts'
import type { Columns } from './columns.ts'
import type { Database } from './database.ts'
import type { Accepts, Filters } from './filter.ts'
import { fillNeighbours } from './neighbours.ts'
import { PostingBuffer } from './postings.ts'
import { Surroundings } from './surroundings.ts'
import type { WordIndex } from './word-index.ts'

/** As many of the best by their own words are looked at with their neighbours. All of a million would take ten times as long. */
const lookedAt = 300
/** A list worth asking whether all of it matters. */
const longList = 10_000
/** So many of the best are read for words side by side. */
const textsLookedAt = 60

export interface Ranked {
  readonly n: number
  /** For the order. */
  readonly score: number
  /** How much of the question it has. */
  readonly fit: number
}

/** The entries that fit a question's words, best first. Keeps its arrays for the next one. */
export class Ranker {
  readonly #buffer = new PostingBuffer()
  #scores = new Float32Array(0)

  rank(question: Question, index: WordIndex, db: Database, filters: Filters): Ranked[] {
    const { columns } = index
    const { terms, parts } = this.#lookUp(question, index, db)
    if (terms.every(term => term.end === term.start)) return []
    const average = columns.totalLength / Math.max(1, columns.live)
    const { accepts, visible } = filters
    const best = this.#best(terms, columns, average, filters)
    const around = new Surroundings(
      best,
      (n, into, offset) => fillNeighbours(n, into, offset, { index, db, visible }),
      accepts,
    )
    const counts = terms.map(term => this.#countsOf(term, around.docs))
    const whole = terms.reduce((sum, term) => sum + term.mass, 0)
    const ranked: Scored[] = []
    const felt = new Float64Array(terms.length)
    for (const [c, n] of around.candidates.entries()) {
      const slot = around.slots[c] as number
      const length = tuning.k1 * (1 - tuning.b + (tuning.b * (columns.length[n] as number)) / average)
      let score = 0
      let covered = 0
      for (let t = 0; t < terms.length; t++) {
        const { weight, mass } = terms[t] as Term
        const here = (counts[t] as Uint16Array)[slot] as number
        const count = here + around.nearby(c, counts[t] as Uint16Array)
        const part = (count * (tuning.k1 + 1)) / (count + length)
        felt[t] = Math.min(1, part)
        if (count === 0) continue
        score += weight * part
        covered += mass
      }
      if (score === 0) continue
      score *= 1 + (tuning.whole * covered) / whole
      ranked.push({ n, slot, length, score, fit: fitOf(parts, felt) })
    }
    ranked.sort(byScore)
    const pairs = pairsOf(question.sequence, terms)
    for (const one of ranked.slice(0, textsLookedAt)) {
      const both = pairs.filter(({ a, b }) => counts[a]?.[one.slot] && counts[b]?.[one.slot])
      if (both.length > 0) one.score += pairScore(one, both, terms, db)
    }
    return ranked.sort(byScore)
  }

  #lookUp(
    question: Question,
    index: WordIndex,
    db: Database,
  ): { readonly terms: readonly Term[]; readonly parts: readonly WeighedPart[] } {
    this.#buffer.length = 0
    const lists = question.words.map(({ word }) => {
      const start = this.#buffer.length
      index.lookUp(db, word, this.#buffer)
      return { start, end: this.#buffer.length }
    })
    const { terms, parts } = weigh(question, index.columns.live, at => {
      const { start, end } = lists[at] as Posted
      return end - start
    })
    return { terms: terms.map((term, at) => ({ ...term, ...(lists[at] as Posted) })), parts }
  }

  /**
   * The best by their own words alone. The rarest words go first; once what the others can add does not reach the best so far, they only
   * add to entries that have a rare one, and the long lists of frequent words are gone through once.
   */
  #best(
    terms: readonly Term[],
    { length: lengths, size }: Columns,
    average: number,
    filters: Filters,
  ): number[] {
    const { accepts, isNarrow } = filters
    if (this.#scores.length < size) this.#scores = new Float32Array(Math.ceil(size * 1.25))
    const ordered = [...terms].sort((a, b) => b.weight - a.weight)
    const fixed = tuning.k1 * (1 - tuning.b)
    const perWord = (tuning.k1 * tuning.b) / average
    const scores = this.#scores
    const { docs, counts } = this.#buffer
    const gainOf = ({ weight }: Term) => weight * (tuning.k1 + 1)
    let rest = ordered.reduce((sum, term) => sum + gainOf(term), 0)
    let leading = ordered.length
    for (const [place, term] of ordered.entries()) {
      const { start, end } = term
      const gain = gainOf(term)
      if (leading === ordered.length && place > 0 && end - start > longList) {
        if (rest <= this.#select(ordered.slice(0, place), accepts, true).floor) leading = place
      }
      const adds = place < leading
      for (let i = start; i < end; i++) {
        const doc = docs[i] as number
        const before = scores[doc] as number
        if (before === 0 && (!adds || (isNarrow && !accepts(doc)))) continue
        const count = counts[i] as number
        scores[doc] = before + (gain * count) / (count + fixed + perWord * (lengths[doc] as number))
      }
      rest -= gain
    }
    return this.#select(ordered.slice(0, leading), accepts, false).docs()
  }

  /** The best of the entries in some lists. Scores are emptied as they are read, unless they are to be kept. */
  #select(terms: readonly Term[], accepts: Accepts, keep: boolean): Best {
    const { docs } = this.#buffer
    const scores = this.#scores
    const best = new Best(lookedAt)
    let { floor } = best
    for (const { start, end } of terms) {
      for (let i = start; i < end; i++) {
        const doc = docs[i] as number
        const score = scores[doc] as number
        // Zero or below: another word of the question had it before.
        if (score <= 0) continue
        scores[doc] = keep ? -score : 0
        if (score <= floor || !accepts(doc)) continue
        best.add(doc, score)
        floor = best.floor
      }
    }
    if (!keep) return best
    for (const { start, end } of terms) {
      for (let i = start; i < end; i++) {
        const doc = docs[i] as number
        scores[doc] = Math.abs(scores[doc] as number)
      }
    }
    return best
  }

  /** How often a word stands in each of some entries, given in ascending order. */
  #countsOf({ start, end }: Term, wanted: Int32Array): Uint16Array {
    const { docs, counts } = this.#buffer
    const found = new Uint16Array(wanted.length)
    let low = start
    for (let i = 0; i < wanted.length; i++) {
      const doc = wanted[i] as number
      low = firstFrom(docs, doc, low, end)
      if (low === end) break
      if (docs[low] === doc) found[i] = counts[low] as number
    }
    return found
  }
}

type Scored = { -readonly [K in keyof Ranked]: Ranked[K] } & {
  readonly slot: number
  readonly length: number
}

const byScore = (a: Ranked, b: Ranked) => b.score - a.score || b.n - a.n

/** Where the list of a word lies in the buffer. */
interface Posted {
  readonly start: number
  readonly end: number
}

interface Term extends QuestionTerm, Posted {}

interface Pair {
  readonly a: number
  readonly b: number
}

/** Words that stand side by side in the question, by their places among its terms. */
function pairsOf(sequence: readonly string[], terms: readonly Term[]): Pair[] {
  const place = new Map(terms.map(({ word }, i) => [word, i]))
  const pairs = new Map<string, Pair>()
  for (let i = 0; i + 1 < sequence.length; i++) {
    const a = place.get(sequence[i] as string) as number
    const b = place.get(sequence[i + 1] as string) as number
    pairs.set(`${a} ${b}`, { a, b })
  }
  return [...pairs.values()]
}

function pairScore(
  { n, length }: Scored,
  pairs: readonly Pair[],
  terms: readonly Term[],
  db: Database,
): number {
  const text = db.get('SELECT text FROM entry WHERE n = ?', n)?.text as string | undefined
  if (text === undefined) return 0
  const { sequence } = wordsOf(text)
  let score = 0
  for (const { a, b } of pairs) {
    const first = terms[a] as Term
    const second = terms[b] as Term
    let count = 0
    for (let i = 0; i + 1 < sequence.length; i++) {
      if (sequence[i] === first.word && sequence[i + 1] === second.word) count++
    }
    score += (tuning.pair * (first.weight + second.weight) * count * (tuning.k1 + 1)) / (count + length)
  }
  return score
}

/** The first place from `low` on that is not below a number: in growing steps, since the next wanted one is mostly near. */
function firstFrom(sorted: Int32Array, wanted: number, low: number, end: number): number {
  let step = 1
  let from = low
  while (from + step < end && (sorted[from + step] as number) < wanted) {
    from += step
    step *= 2
  }
  let to = Math.min(end, from + step + 1)
  while (from < to) {
    const middle = (from + to) >>> 1
    if ((sorted[middle] as number) < wanted) from = middle + 1
    else to = middle
  }
  return from
}

/** The highest so many of many, in a heap whose root is the lowest of them. */
class Best {
  readonly #docs: Int32Array
  readonly #scores: Float32Array
  #size = 0

  constructor(room: number) {
    this.#docs = new Int32Array(room)
    this.#scores = new Float32Array(room)
  }

  /** What a score must exceed to come in. */
  get floor(): number {
    return this.#size < this.#docs.length ? 0 : (this.#scores[0] as number)
  }

  add(doc: number, score: number): void {
    if (this.#size < this.#docs.length) this.#rise(this.#size++, doc, score)
    else this.#sink(doc, score)
  }

  /** The highest first. */
  docs(): number[] {
    const places = Array.from({ length: this.#size }, (_, i) => i)
    places.sort((a, b) => (this.#scores[b] as number) - (this.#scores[a] as number))
    return places.map(i => this.#docs[i] as number)
  }

  #rise(from: number, doc: number, score: number): void {
    let i = from
    while (i > 0) {
      const parent = (i - 1) >> 1
      if ((this.#scores[parent] as number) <= score) break
      this.#put(i, this.#docs[parent] as number, this.#scores[parent] as number)
      i = parent
    }
    this.#put(i, doc, score)
  }

  #sink(doc: number, score: number): void {
    let i = 0
    for (;;) {
      let child = 2 * i + 1
      if (child >= this.#size) break
      if (child + 1 < this.#size && (this.#scores[child + 1] as number) < (this.#scores[child] as number))
        child++
      if ((this.#scores[child] as number) >= score) break
      this.#put(i, this.#docs[child] as number, this.#scores[child] as number)
      i = child
    }
    this.#put(i, doc, score)
  }

  #put(i: number, doc: number, score: number): void {
    this.#docs[i] = doc
    this.#scores[i] = score
  }
}
