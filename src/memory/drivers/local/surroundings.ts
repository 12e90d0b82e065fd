import { tuning } from '../../tuning.ts'
import type { Accepts } from './filter.ts'

const { reach } = tuning
const places = reach * 2

/** What a word is worth in each of an entry's neighbours: those before it from the nearest on, then those behind it. */
const parts = Float64Array.from({ length: places }, (_, i) =>
  i < reach ? tuning.before * tuning.decay ** i : tuning.after * tuning.decay ** (i - reach),
)

/** The neighbours of so many of the best may be hits themselves, without a word of their own. */
const neighboursLookedAt = 60

/** The entries that are looked at, with their neighbours, as places in one ascending list of them all. */
export class Surroundings {
  readonly candidates: Int32Array
  readonly docs: Int32Array
  /** The place of each candidate. */
  readonly slots: Int32Array
  /** The places of its neighbours in the order of `parts`; -1 where there is none. */
  readonly #near: Int32Array

  /** `fill` writes an entry's neighbours, 0 where there is none. */
  constructor(
    best: readonly number[],
    fill: (n: number, into: Int32Array, offset: number) => void,
    accepts: Accepts,
  ) {
    const few = new Int32Array(Math.min(best.length, neighboursLookedAt) * places)
    for (let i = 0; i < few.length / places; i++) fill(best[i] as number, few, i * places)
    this.candidates = ascending(Int32Array.of(...best, ...few.filter(n => n !== 0 && accepts(n))))
    const near = new Int32Array(this.candidates.length * places)
    for (const [c, n] of this.candidates.entries()) fill(n, near, c * places)
    const all = new Int32Array(this.candidates.length + near.length)
    all.set(this.candidates)
    all.set(near, this.candidates.length)
    this.docs = ascending(all)
    if (this.docs[0] === 0) this.docs = this.docs.subarray(1)
    this.slots = this.candidates.map(n => placeOf(this.docs, n))
    this.#near = near.map(n => (n === 0 ? -1 : placeOf(this.docs, n)))
  }

  /** What a word's counts in a candidate's neighbours are worth. */
  nearby(candidate: number, counts: Uint16Array): number {
    const start = candidate * places
    let sum = 0
    for (let i = 0; i < places; i++) {
      const slot = this.#near[start + i] as number
      if (slot >= 0) sum += (parts[i] as number) * (counts[slot] as number)
    }
    return sum
  }
}

/** Sorted, each once. */
function ascending(numbers: Int32Array): Int32Array {
  numbers.sort()
  let length = 0
  for (let i = 0; i < numbers.length; i++) {
    if (i === 0 || numbers[i] !== numbers[i - 1]) numbers[length++] = numbers[i] as number
  }
  return numbers.subarray(0, length)
}

function placeOf(sorted: Int32Array, wanted: number): number {
  let low = 0
  let high = sorted.length - 1
  while (low < high) {
    const middle = (low + high) >> 1
    if ((sorted[middle] as number) < wanted) low = middle + 1
    else high = middle
  }
  return low
}
