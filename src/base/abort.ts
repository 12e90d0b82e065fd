import { RathError } from './errors.ts'

interface Waiting {
  readonly callbacks: Set<() => void>
  /** The signal is one of ours and goes with its work; its listener may stay. */
  readonly stays: boolean
}

/** What to do on abort, for each signal that somebody waits on. */
const waiting = new WeakMap<AbortSignal, Waiting>()

/**
 * Calls back once when the signal aborts; at once when it has. However many wait on a signal, it carries one listener, and none
 * once all are disposed, so a signal that outlives a thousand calls holds on to none of them.
 */
export function onAbort(signal: AbortSignal, callback: () => void): Disposable {
  if (!signal.aborted) return new Link(signal, callback)
  callback()
  return nothing
}

class Link implements Disposable {
  readonly #signal: AbortSignal
  readonly #callback: () => void
  readonly #callbacks: Set<() => void>

  constructor(signal: AbortSignal, callback: () => void) {
    this.#signal = signal
    this.#callback = callback
    this.#callbacks = (waiting.get(signal) ?? listen(signal, false)).callbacks
    this.#callbacks.add(callback)
  }

  [Symbol.dispose](): void {
    const callbacks = this.#callbacks
    callbacks.delete(this.#callback)
    if (callbacks.size > 0 || waiting.get(this.#signal)?.stays !== false) return
    waiting.delete(this.#signal)
    this.#signal.removeEventListener('abort', run)
  }
}

const nothing: Disposable = { [Symbol.dispose]() {} }

function listen(signal: AbortSignal, stays: boolean): Waiting {
  const entry = { callbacks: new Set<() => void>(), stays }
  waiting.set(signal, entry)
  signal.addEventListener('abort', run, { once: true })
  return entry
}

function run(event: Event): void {
  const signal = event.target as AbortSignal
  const callbacks = waiting.get(signal)?.callbacks
  waiting.delete(signal)
  for (const callback of callbacks ?? []) callback()
}

/** A signal that aborts with the first of several, and lets go of them when disposed. */
export class LinkedAbort implements Disposable {
  readonly #controller = new AbortController()
  readonly #links: Disposable[] = []

  constructor(...outer: readonly (AbortSignal | undefined)[]) {
    listen(this.#controller.signal, true)
    for (const signal of outer) {
      if (signal) this.#links.push(onAbort(signal, () => this.abort(signal.reason)))
    }
  }

  get signal(): AbortSignal {
    return this.#controller.signal
  }

  abort(reason: unknown): void {
    this.#controller.abort(reason)
  }

  [Symbol.dispose](): void {
    for (const link of this.#links) link[Symbol.dispose]()
    this.#links.length = 0
  }
}

/** The result, unless the signal aborts first: work that does not listen to it is left behind. */
export function untilAbort<T>(
  work: PromiseLike<T>,
  signal: AbortSignal,
  discard?: (late: T) => void,
): Promise<T> {
  return new Promise((resolve, reject) => {
    let left = false
    const link = onAbort(signal, () => {
      left = true
      reject(cancelledError(signal))
    })
    Promise.resolve(work).then(
      result => {
        link[Symbol.dispose]()
        if (left) discard?.(result)
        else resolve(result)
      },
      error => {
        link[Symbol.dispose]()
        reject(error)
      },
    )
  })
}

/** The error of work that was stopped because its signal aborted. */
export function cancelledError(signal: AbortSignal): RathError {
  const { reason } = signal
  const why = reason instanceof Error ? reason.message : reason === undefined ? '' : String(reason)
  return new RathError('cancelled', `The work was cancelled${why ? `: ${why}` : ''}.`, { cause: reason })
}
