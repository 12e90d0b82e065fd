/** Tells many about one signal through one listener: a turn of 500 calls adds a single one, and `dispose` takes it away. */
export class Cancellation {
  readonly #signal: AbortSignal
  readonly #followers = new Set<() => void>()
  readonly #tell = () => {
    for (const follower of [...this.#followers]) follower()
    this.#followers.clear()
  }

  constructor(signal: AbortSignal) {
    this.#signal = signal
    signal.addEventListener('abort', this.#tell)
  }

  get isAborted(): boolean {
    return this.#signal.aborted
  }

  get reason(): unknown {
    return this.#signal.reason
  }

  /** Calls back when the signal aborts, at once if it has; returns what to call when it no longer matters. */
  follow(follower: () => void): () => void {
    if (this.#signal.aborted) {
      follower()
      return () => {}
    }
    this.#followers.add(follower)
    return () => this.#followers.delete(follower)
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
    this.#signal.removeEventListener('abort', this.#tell)
    this.#followers.clear()
  }
}
