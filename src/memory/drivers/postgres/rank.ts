import type { Fit } from '../../calibrate.ts'
import { tuning } from '../../tuning.ts'
import { type Words, wordsOf } from '../../words.ts'

export interface Term {
  readonly word: string
  /** Its rarity, as BM25 has it. */
  readonly weight: number
  /** What it counts for when asking how much of a question is covered: in a store of few entries rarity says little. */
  readonly mass: number
}

export interface Candidate {
  readonly n: string
  readonly length: number
  /** The entries beside it, and what a word in each is worth. */
  readonly context: readonly (readonly [n: string, part: number])[]
}

export interface Ranked extends Fit {
  readonly n: string
  readonly score: number
}

export function termsOf({ terms }: Words, have: ReadonlyMap<string, number>, entries: number): Term[] {
  const live = Math.max(1, entries)
  return [...new Set(terms)].map(word => {
    const count = Math.min(have.get(word) ?? 0, live)
    const weight = Math.log(1 + (live - count + 0.5) / (count + 0.5))
    return { word, weight, mass: 2 + weight }
  })
}

/** BM25 with a turn's neighbours counted in, best first. `counts` says how often a word stands in an entry. */
export function rank(
  terms: readonly Term[],
  candidates: readonly Candidate[],
  counts: ReadonlyMap<string, ReadonlyMap<string, number>>,
  averageLength: number,
): Ranked[] {
  const { k1, b } = tuning
  const most = terms.reduce((sum, term) => sum + term.weight * (k1 + 1), 0)
  const mass = terms.reduce((sum, term) => sum + term.mass, 0)
  const ranked: Ranked[] = []
  for (const { n, length, context } of candidates) {
    const norm = k1 * (1 - b + (b * length) / averageLength)
    let score = 0
    let covered = 0
    for (const term of terms) {
      const here = counts.get(n)?.get(term.word) ?? 0
      let count = here
      for (const [other, part] of context) count += part * (counts.get(other)?.get(term.word) ?? 0)
      if (count === 0) continue
      score += (term.weight * count * (k1 + 1)) / (count + norm)
      covered += term.mass
    }
    if (score === 0) continue
    score *= 1 + (tuning.whole * covered) / mass
    ranked.push({ n, score, around: covered / mass, strength: score / most })
  }
  return ranked.sort(bestFirst)
}

/** Adds what words of the question side by side are worth, for entries whose texts are given. */
export function withPairs(
  ranked: readonly Ranked[],
  question: Words,
  terms: readonly Term[],
  texts: ReadonlyMap<string, string>,
  lengths: ReadonlyMap<string, number>,
  averageLength: number,
): Ranked[] {
  const { k1, b, pair } = tuning
  const weight = new Map(terms.map(term => [term.word, term.weight]))
  const pairs = new Set(question.sequence.slice(1).map((word, i) => `${question.sequence[i]} ${word}`))
  const most = terms.reduce((sum, term) => sum + term.weight * (k1 + 1), 0)
  return ranked
    .map(one => {
      const text = texts.get(one.n)
      if (text === undefined || pairs.size === 0) return one
      const norm = k1 * (1 - b + (b * (lengths.get(one.n) ?? averageLength)) / averageLength)
      let score = one.score
      for (const [words, count] of pairsIn(wordsOf(text).sequence, pairs)) {
        const both = words.split(' ').reduce((sum, word) => sum + (weight.get(word) ?? 0), 0)
        score += (pair * both * count * (k1 + 1)) / (count + norm)
      }
      return { ...one, score, strength: score / most }
    })
    .sort(bestFirst)
}

function pairsIn(sequence: readonly string[], wanted: ReadonlySet<string>): Map<string, number> {
  const found = new Map<string, number>()
  for (let i = 1; i < sequence.length; i++) {
    const words = `${sequence[i - 1]} ${sequence[i]}`
    if (wanted.has(words)) found.set(words, (found.get(words) ?? 0) + 1)
  }
  return found
}

function bestFirst(a: Ranked, b: Ranked): number {
  return b.score - a.score || Number(BigInt(b.n) - BigInt(a.n))
}
