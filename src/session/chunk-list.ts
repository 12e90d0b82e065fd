import { chunkAt, chunksFrom, lengthOf, previousOf } from './chain.ts'
import type { Chunk } from './chunk.ts'

/** A session's chunks, read-only: iterable in order, any one reached in O(log n). Holds nothing of its own. */
export class ChunkList implements Iterable<Chunk> {
  readonly #tip: Chunk | undefined

  constructor(tip: Chunk | undefined) {
    this.#tip = tip
    Object.freeze(this)
  }

  get length(): number {
    return lengthOf(this.#tip)
  }

  /** The chunk at an index, counted from the end when negative; undefined outside the list. */
  at(index: number): Chunk | undefined {
    const whole = Math.trunc(index) || 0
    const wanted = whole < 0 ? whole + this.length : whole
    return this.#tip && wanted >= 0 && wanted < this.length ? chunkAt(this.#tip, wanted) : undefined
  }

  slice(start = 0, end = this.length): Chunk[] {
    const from = clamp(start, this.length)
    const to = clamp(end, this.length)
    return from < to ? chunksFrom(this.at(to - 1), from) : []
  }

  map<T>(change: (chunk: Chunk, index: number) => T): T[] {
    return this.slice().map(change)
  }

  filter<T extends Chunk>(keep: (chunk: Chunk, index: number) => chunk is T): T[]
  filter(keep: (chunk: Chunk, index: number) => boolean): Chunk[]
  filter(keep: (chunk: Chunk, index: number) => boolean): Chunk[] {
    return this.slice().filter(keep)
  }

  flatMap<T>(change: (chunk: Chunk, index: number) => T | readonly T[]): T[] {
    return this.slice().flatMap(change)
  }

  find<T extends Chunk>(matches: (chunk: Chunk) => chunk is T): T | undefined
  find(matches: (chunk: Chunk) => boolean): Chunk | undefined
  find(matches: (chunk: Chunk) => boolean): Chunk | undefined {
    return this.slice().find(matches)
  }

  /** Looks from the newest back, and no further than it must. */
  findLast<T extends Chunk>(matches: (chunk: Chunk) => chunk is T): T | undefined
  findLast(matches: (chunk: Chunk) => boolean): Chunk | undefined
  findLast(matches: (chunk: Chunk) => boolean): Chunk | undefined {
    for (let here = this.#tip; here; here = previousOf(here)) if (matches(here)) return here
    return undefined
  }

  [Symbol.iterator](): ArrayIterator<Chunk> {
    return this.slice()[Symbol.iterator]()
  }

  toJSON(): Chunk[] {
    return this.slice()
  }

  [Symbol.for('nodejs.util.inspect.custom')](): Chunk[] {
    return this.slice()
  }
}

function clamp(index: number, length: number): number {
  const whole = Math.trunc(index) || 0
  return Math.min(Math.max(whole < 0 ? whole + length : whole, 0), length)
}
