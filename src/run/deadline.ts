import { LinkedAbort } from '../base/abort.ts'
import { longestTimer } from '../base/time.ts'
import type { RunContext } from './context.ts'

/** The call's signal, which aborts also when the time of the budget is over. */
export class Deadline implements Disposable {
  readonly signal: AbortSignal
  readonly #abort: LinkedAbort | undefined
  readonly #timer: NodeJS.Timeout | undefined
  passed = false

  constructor({ signal, budget }: RunContext) {
    const { timeLeft } = budget
    this.signal = signal
    // Longer than a timer can hold is not limited by one.
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
