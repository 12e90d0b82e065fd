import { fitOf, type Question, type Term, type WeighedPart } from '../../question.ts'
import { tuning } from '../../tuning.ts'
import { wordsOf } from '../../words.ts'

export interface Candidate {
  readonly n: string
  readonly length: number
  /** The entries beside it, and what a word in each is worth. */
  readonly context: readonly (readonly [n: string, part: number])[]
}

export interface Ranked {
  readonly n: string
  readonly score: number
  /** How much of the question it has. */
  readonly fit: number
}

/** BM25 with a turn's neighbours counted in, best first. `counts` says how often a word stands in an entry. */
export function rank(
  terms: readonly Term[],
  parts: readonly WeighedPart[],
  candidates: readonly Candidate[],
  counts: ReadonlyMap<string, ReadonlyMap<string, number>>,
  averageLength: number,
): Ranked[] {
  const { k1, b } = tuning
  const mass = terms.reduce((sum, term) => sum + term.mass, 0)
  const ranked: Ranked[] = []
  const felt = new Float64Array(terms.length)
  for (const { n, length, context } of candidates) {
    const norm = k1 * (1 - b + (b * length) / averageLength)
    let score = 0
    let covered = 0
    for (const [t, term] of terms.entries()) {
      let count = counts.get(n)?.get(term.word) ?? 0
      for (const [other, part] of context) count += part * (counts.get(other)?.get(term.word) ?? 0)
      const part = (count * (k1 + 1)) / (count + norm)
      felt[t] = Math.min(1, part)
      if (count === 0) continue
      score += term.weight * part
      covered += term.mass
    }
    if (score === 0) continue
    score *= 1 + (tuning.whole * covered) / mass
    ranked.push({ n, score, fit: fitOf(parts, felt) })
  }
  return ranked.sort(bestFirst)
}

/** Adds what words of the question side by side are worth, for entries whose texts are given. */
export function withPairs(
  ranked: readonly Ranked[],
  question: Question,
  terms: readonly Term[],
  texts: ReadonlyMap<string, string>,
  lengths: ReadonlyMap<string, number>,
  averageLength: number,
): Ranked[] {
  const { k1, b, pair } = tuning
  const weight = new Map(terms.map(term => [term.word, term.weight]))
  const pairs = new Set(question.sequence.slice(1).map((word, i) => `${question.sequence[i]} ${word}`))
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
      return { ...one, score }
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
