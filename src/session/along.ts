import { previousOf } from './chain.ts'
import type { Chunk } from './chunk.ts'

/**
 * Something that can be said of a chain by going along it once, kept with the chunks that it was asked for: the next question about a longer
 * chain, or a fork, looks only at what is new.
 */
export class Along<T> {
  readonly #start: T
  readonly #step: (before: T, chunk: Chunk) => T
  readonly #kept = new WeakMap<Chunk, { readonly value: T }>()

  /** `step` returns its first argument for a chunk that changes nothing, and never changes it. */
  constructor(start: T, step: (before: T, chunk: Chunk) => T) {
    this.#start = start
    this.#step = step
  }

  at(tip: Chunk | undefined): T {
    const fresh: Chunk[] = []
    let value = this.#start
    for (let here = tip; here; here = previousOf(here)) {
      const kept = this.#kept.get(here)
      if (kept) {
        value = kept.value
        break
      }
      fresh.push(here)
    }
    for (const chunk of fresh.reverse()) value = this.#step(value, chunk)
    if (tip) this.#kept.set(tip, { value })
    return value
  }
}
