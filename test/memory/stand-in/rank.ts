import { wordsOf } from '../../../src/memory/words.ts'

/** For each text, how much of what the query asks for it has, rare words counting more: enough for a stand-in of a search by meaning. */
export function rank(query: string, texts: readonly string[]): number[] {
  const asked = new Set(wordsOf(query).terms)
  const had = texts.map(text => new Set(wordsOf(text).terms))
  const weight = new Map(
    [...asked].map(term => [term, rarity(had.filter(terms => terms.has(term)).length, texts.length)]),
  )
  const all = [...weight.values()].reduce((sum, one) => sum + one, 0)
  return had.map(terms => {
    let sum = 0
    for (const [term, one] of weight) if (terms.has(term)) sum += one
    return all === 0 ? 0 : sum / all
  })
}

function rarity(among: number, all: number): number {
  return Math.log(1 + (all + 1) / (among + 0.5))
}
