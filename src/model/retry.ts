import { cancelledError, LinkedAbort, onAbort } from '../base/abort.ts'
import { RathError, show } from '../base/errors.ts'
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
  /** How long one request may take. An attempt that is too slow counts as failed, and is tried again. */
  readonly timeout?: ModelTimeout
}

/** Milliseconds. The first two need an answer that is streamed, which it is when somebody follows the events of the call. */
export interface ModelTimeout {
  /** To the first piece of the answer; 300,000 by default. */
  readonly firstToken?: number
  /** From one piece to the next; 120,000 by default. */
  readonly betweenTokens?: number
  /** To the end of the answer; 900,000 by default. */
  readonly total?: number
}

/** Ends one request to a model that is silent for too long. `signal` is what the request hears. */
export class Patience implements Disposable {
  readonly #abort: LinkedAbort
  readonly #limits: Required<ModelTimeout>
  readonly #model: string
  readonly #start = performance.now()
  #heardAt: number | undefined
  #timer: NodeJS.Timeout | undefined
  /** Why it was ended. */
  error: RathError | undefined

  constructor(
    model: string,
    { firstToken = 300_000, betweenTokens = 120_000, total = 900_000 }: ModelTimeout,
    streams: boolean,
    outer: AbortSignal,
  ) {
    this.#model = model
    const silent = streams ? { firstToken, betweenTokens } : { firstToken: total, betweenTokens: total }
    this.#limits = { ...silent, total }
    for (const [name, ms] of Object.entries({ firstToken, betweenTokens, total })) {
      if (!(ms > 0))
        throw new RathError(
          'invalid-argument',
          `retry.timeout.${name} must be milliseconds above 0, not ${show(ms)}.`,
        )
    }
    this.#abort = new LinkedAbort(outer)
    this.#wait()
  }

  get signal(): AbortSignal {
    return this.#abort.signal
  }

  /** A piece of the answer came. Costs no timer: the one that runs looks at the time when it ends. */
  heard(): void {
    this.#heardAt = performance.now()
  }

  #wait(): void {
    const left = this.#next().at - performance.now()
    if (left > longestTimer) return
    this.#timer = setTimeout(
      () => {
        const next = this.#next()
        if (next.at > performance.now()) this.#wait()
        else this.#end(next.name)
      },
      Math.max(1, left),
    )
  }

  #next(): { readonly name: keyof ModelTimeout; readonly at: number } {
    const { firstToken, betweenTokens, total } = this.#limits
    const end = this.#start + total
    const silence = this.#heardAt === undefined ? this.#start + firstToken : this.#heardAt + betweenTokens
    if (silence >= end) return { name: 'total', at: end }
    return { name: this.#heardAt === undefined ? 'firstToken' : 'betweenTokens', at: silence }
  }

  #end(name: keyof ModelTimeout): void {
    const seconds = this.#limits[name] / 1000
    const what = {
      firstToken: 'said nothing for',
      betweenTokens: 'went silent in its answer for',
      total: 'did not finish its answer in',
    }[name]
    this.error = new RathError(
      'model-timeout',
      `${this.#model} ${what} ${seconds} s. Raise retry.timeout.${name} to wait longer.`,
      {
        data: { timeout: name, ms: this.#limits[name] },
      },
    )
    this.#abort.abort(this.error)
  }

  [Symbol.dispose](): void {
    clearTimeout(this.#timer)
    this.#abort[Symbol.dispose]()
  }
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
