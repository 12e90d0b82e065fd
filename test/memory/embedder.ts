import type { Embedder } from '../../src/memory/embedding.ts'
import { wordsOf } from '../../src/memory/words.ts'

/** Words that mean the same to this model, whatever they look like. */
const concepts = [
  ['tea', 'drink', 'beverage', 'coffee'],
  ['car', 'automobile', 'vehicle'],
  ['doctor', 'physician', 'surgeon'],
  ['happy', 'glad', 'joyful'],
]

/** A model that knows some synonyms and is otherwise a hash of the words: the same text has the same vector everywhere. */
export function fakeEmbedder(
  options: { readonly model?: string; readonly dimensions?: number } = {},
): Embedder & {
  readonly asked: string[][]
  fail: Error | undefined
} {
  const { model = 'fake/words', dimensions = 256 } = options
  return {
    model,
    dimensions,
    asked: [],
    fail: undefined,
    async embed(texts) {
      this.asked.push([...texts])
      if (this.fail) throw this.fail
      return texts.map(text => {
        const vector = Array.from({ length: dimensions }, () => 0)
        for (const term of wordsOf(text).terms) {
          const concept = concepts.findIndex(words => words.includes(term))
          const name = concept < 0 ? term : `concept ${concept}`
          let hash = 2166136261
          for (const character of `${model} ${name}`)
            hash = Math.imul(hash ^ character.charCodeAt(0), 16777619)
          for (let i = 0; i < 8; i++) {
            hash = Math.imul(hash ^ (hash >>> 15), 2246822519) + i
            const place = (hash >>> 0) % dimensions
            vector[place] = (vector[place] as number) + (hash & 0x10000 ? 1 : -1)
          }
        }
        return vector
      })
    },
  }
}
