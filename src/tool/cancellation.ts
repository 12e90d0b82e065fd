import { onAbort } from '../base/abort.ts'

/** The signal of a turn, and everything in the turn that waits on it; `dispose` lets go of all of them at once. */
export class Cancellation {
  readonly #signal: AbortSignal
  readonly #followers = new Set<Disposable>()

  constructor(signal: AbortSignal) {
    this.#signal = signal
  }

  get isAborted(): boolean {
    return this.#signal.aborted
  }

  get reason(): unknown {
    return this.#signal.reason
  }

  /** Calls back when the signal aborts, at once if it has; returns what to call when it no longer matters. */
  follow(follower: () => void): () => void {
    const link = onAbort(this.#signal, follower)
    this.#followers.add(link)
    return () => {
      this.#followers.delete(link)
      link[Symbol.dispose]()
    }
  }

  /** What a promise gives, or `undefined` as soon as the signal aborts. The promise itself goes on unheard. */
  orAborted<T>(promise: Promise<T>): Promise<T | undefined> {
    return new Promise((resolve, reject) => {
      const forget = this.follow(() => resolve(undefined))
      promise.then(
        value => {
          forget()
          resolve(value)
        },
        error => {
          forget()
          reject(error)
        },
      )
    })
  }

  dispose(): void {
    for (const link of this.#followers) link[Symbol.dispose]()
    this.#followers.clear()
  }
}
