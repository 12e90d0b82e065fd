import { cancelledError, onAbort } from '../base/abort.ts'
import { RathError } from '../base/errors.ts'
import { longestTimer } from '../base/time.ts'

/** How patient to be with a provider. */
export interface RetryOptions {
  /** How often to try in all; 4 by default, 1 never retries. */
  readonly attempts?: number
  /** The first wait is at most this long, and every further one at most twice the one before; 500 by default. */
  readonly baseMs?: number
  /** No wait that we choose is longer; 30,000 by default. */
  readonly capMs?: number
  /** A provider that asks for a longer wait is not waited for; 60,000 by default. */
  readonly maximumWaitMs?: number
}

export interface RetryContext {
  readonly signal?: AbortSignal | undefined
  /** Told before each wait. `attempt` is the number of the try that failed, from 1. */
  readonly onRetry?: ((error: RathError, attempt: number, waitMs: number) => void) | undefined
  readonly sleep?: (ms: number, signal?: AbortSignal) => Promise<void>
  readonly random?: () => number
}

/**
 * Runs `task` until it succeeds, fails for good, or was tried often enough. Waits grow exponentially with full jitter; a
 * provider's own `retryAfterMs` is honoured. The provider packages do not retry, so this is the only place that does.
 */
export async function withRetry<T>(
  task: (attempt: number) => Promise<T>,
  options: RetryOptions = {},
  context: RetryContext = {},
): Promise<T> {
  const { attempts = 4 } = options
  const { signal, sleep: pause = sleep, random = Math.random } = context
  for (let attempt = 1; ; attempt++) {
    if (signal?.aborted) throw cancelledError(signal)
    try {
      return await task(attempt)
    } catch (error) {
      if (
        !(error instanceof RathError) ||
        error.retry === 'never' ||
        !(attempt < attempts) ||
        signal?.aborted
      )
        throw error
      const waitMs = waitFor(error, attempt, options, random)
      context.onRetry?.(error, attempt, waitMs)
      await pause(waitMs, signal)
    }
  }
}

function waitFor(error: RathError, attempt: number, options: RetryOptions, random: () => number): number {
  const { baseMs = 500, capMs = 30_000, maximumWaitMs = 60_000 } = options
  const asked = error.data.retryAfterMs
  if (typeof asked !== 'number') return Math.round(random() * Math.min(capMs, baseMs * 2 ** (attempt - 1)))
  if (asked > maximumWaitMs) {
    throw new RathError(
      error.code,
      `${error.message}\nThe provider asks to wait ${Math.ceil(asked / 1000)} s, and retry.maximumWaitMs allows ${maximumWaitMs / 1000} s.`,
      { cause: error, data: error.data },
    )
  }
  // A little later than asked, so that a hundred agents told the same time do not all come back at it.
  return Math.round(asked + random() * Math.min(baseMs, maximumWaitMs - asked))
}

/** Waits; an abort ends the wait at once with the error of cancelled work. */
export function sleep(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) {
      reject(cancelledError(signal))
      return
    }
    const timer = setTimeout(
      () => {
        link?.[Symbol.dispose]()
        resolve()
      },
      Math.min(ms, longestTimer),
    )
    const link =
      signal &&
      onAbort(signal, () => {
        clearTimeout(timer)
        reject(cancelledError(signal))
      })
  })
}
