import { LinkedAbort } from '../base/abort.ts'
import type { RunContext } from './context.ts'

/** Longer waits than a timer can hold are not limited by one. */
export const longestTimer = 2 ** 31 - 1

/** The call's signal, which aborts also when the time of the budget is over. */
export class Deadline implements Disposable {
  readonly signal: AbortSignal
  readonly #abort: LinkedAbort | undefined
  readonly #timer: NodeJS.Timeout | undefined
  passed = false

  constructor({ signal, budget }: RunContext) {
    const { timeLeft } = budget
    this.signal = signal
    if (timeLeft > longestTimer) return
    const abort = new LinkedAbort(signal)
    this.#abort = abort
    this.signal = abort.signal
    this.#timer = setTimeout(
      () => {
        this.passed = true
        abort.abort(new Error('the time of the budget is over'))
      },
      Math.max(0, timeLeft),
    )
  }

  [Symbol.dispose](): void {
    clearTimeout(this.#timer)
    this.#abort?.[Symbol.dispose]()
  }
}
