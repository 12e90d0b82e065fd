import { setImmediate } from 'node:timers/promises'
import { cancelledError } from '../../base/abort.ts'

/** How long work may hold up everything else in this process. */
const longest = 12

/** Lets long work stop for others, and for its own signal: `if (breath.due) await breath.take()`. */
export class Breath {
  readonly #signal: AbortSignal | undefined
  #until = performance.now() + longest

  constructor(signal: AbortSignal | undefined) {
    this.#signal = signal
    this.#check()
  }

  get due(): boolean {
    return performance.now() > this.#until
  }

  async take(): Promise<void> {
    await setImmediate()
    this.#check()
    this.#until = performance.now() + longest
  }

  #check(): void {
    if (this.#signal?.aborted) throw cancelledError(this.#signal)
  }
}
