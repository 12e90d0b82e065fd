import { askedIn } from './entry.ts'
import type { RunRecord } from './record.ts'

/**
 * Which of several effects with one key is meant: on record, the next one of whoever asks, since equal things asked side by side end in any
 * order; else the next of anybody, who may have had another name. What is not on record is numbered in the order asked.
 */
export class Occurrences {
  readonly #record: RunRecord | undefined
  readonly #left = new Map<string, Left>()

  constructor(record?: RunRecord) {
    this.#record = record
  }

  /** The next one on record of whoever asks and of nobody else, without taking it. */
  own(key: string, by: string): number | undefined {
    return this.#leftOf(key).queues.get(by)?.at(-1)
  }

  take(key: string, by: string): number {
    const left = this.#leftOf(key)
    return queueOf(left, by)?.pop() ?? left.next++
  }

  #leftOf(key: string): Left {
    let left = this.#left.get(key)
    if (left === undefined) {
      left = leftIn(this.#record, key)
      this.#left.set(key, left)
    }
    return left
  }
}

interface Left {
  /** Those on record that nobody has taken yet, by who asked, the next one last. */
  readonly queues: ReadonlyMap<string, number[]>
  /** The first that is not on record. */
  next: number
}

const nobody: ReadonlyMap<string, number[]> = new Map()

function leftIn(record: RunRecord | undefined, key: string): Left {
  const entries = record?.withKey(key) ?? []
  if (entries.length === 0) return { queues: nobody, next: 0 }
  const sorted = [...entries].sort((a, b) => b.occurrence - a.occurrence)
  const queues = new Map<string, number[]>()
  for (const entry of sorted) {
    const { by } = askedIn(entry)
    const queue = queues.get(by)
    if (queue) queue.push(entry.occurrence)
    else queues.set(by, [entry.occurrence])
  }
  return { queues, next: (sorted[0] as { occurrence: number }).occurrence + 1 }
}

function queueOf({ queues }: Left, by: string): number[] | undefined {
  const own = queues.get(by)
  if (own && own.length > 0) return own
  let first: number[] | undefined
  for (const queue of queues.values()) {
    const isNext = (queue.at(-1) ?? Infinity) < (first?.at(-1) ?? Infinity)
    if (isNext) first = queue
  }
  return first
}
