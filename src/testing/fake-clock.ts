import { mock } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import { RathError, show } from '../base/errors.ts'

/** The time of this process, held in one's hand. Disposing of it lets the real one go on. */
export interface FakeClock extends Disposable {
  /** The time it shows, in milliseconds since the epoch. */
  readonly now: number
  /** Lets time pass. What was to happen until then happens in its order, with what follows from it. */
  advance(ms: number): Promise<void>
}

/** How finely time passes: work that a timer starts may set the next one, and that one counts from when it was set. */
const mostSteps = 200

/** How many turns of the event loop work that is under way gets to set its timers before time passes; a busy store pauses for some. */
const settlingTurns = 20

let isHeld = false

/**
 * Stops `Date`, `setTimeout` and `setInterval`, so that a test need not wait for retries, time budgets, timeouts of tools, leases or
 * questions that expire. What the operating system does, such as files, sockets and commands, takes its own time.
 */
export function fakeClock(start: number | Date = 0): FakeClock {
  const begin = Number(start)
  if (!Number.isSafeInteger(begin) || begin < 0) {
    throw new RathError(
      'invalid-argument',
      `A clock starts at a date or whole milliseconds, not ${show(start)}.`,
    )
  }
  if (isHeld) {
    throw new RathError('invalid-argument', 'There is a fake clock already: dispose of it before another.')
  }
  isHeld = true
  mock.timers.enable({ apis: ['setTimeout', 'setInterval', 'Date'], now: begin })
  return {
    get now() {
      return Date.now()
    },
    async advance(ms) {
      if (!Number.isSafeInteger(ms) || ms < 0) {
        throw new RathError('invalid-argument', `Time passes in whole milliseconds from 0, not ${show(ms)}.`)
      }
      const step = Math.ceil(ms / mostSteps)
      for (let i = 0; i < settlingTurns; i++) await turn()
      for (let left = ms; left > 0; left -= step) {
        mock.timers.tick(Math.min(step, left))
        await turn()
      }
    },
    [Symbol.dispose]() {
      mock.timers.reset()
      isHeld = false
    },
  }
}
