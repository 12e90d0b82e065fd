import type { Clock } from '../base/clock.ts'

/**
 * The time in a call of a resumed run: that of the last outcome it was given from the record, until it does something that is not on
 * record. So what it makes on the way has the time at which it was first made, and no time runs backwards.
 */
export class RunClock implements Clock {
  readonly #outer: RunClock | undefined
  /** Undefined when the call has gone past its record: then the clock on the wall counts. */
  #at: number | undefined

  constructor(at: number | undefined, outer?: RunClock) {
    this.#at = at
    this.#outer = outer
  }

  now(): number {
    return this.#at ?? Date.now()
  }

  served(at: number | undefined): void {
    if (at !== undefined && this.#at !== undefined) this.#at = Math.max(this.#at, at)
  }

  live(): void {
    this.#at = undefined
  }

  /** For a call inside this one. */
  inner(): RunClock {
    return new RunClock(this.#at, this)
  }

  /** The call has ended: whoever goes on from it is as late. */
  end(): void {
    if (this.#at === undefined) this.#outer?.live()
    else this.#outer?.served(this.#at)
  }
}
