import { RathError } from '../base/errors.ts'
import type { ExecOutput } from './spec.ts'

/** Bytes that may wait for a follower before the command is slowed down. */
const highWater = 1024 * 1024

/** The output of a command on its way to whoever follows it. Nothing is kept while nobody does. */
export class OutputFeed implements AsyncIterable<ExecOutput> {
  readonly #drained: () => void
  #queue: ExecOutput[] = []
  #waiting = 0
  #isFollowed = false
  #isAttached = false
  #end: { readonly error?: unknown } | undefined
  #wake: (() => void) | undefined

  /** `drained` is called when a follower has caught up, or has gone. */
  constructor(drained: () => void) {
    this.#drained = drained
  }

  /** False when the follower is so far behind that more should wait for `drained`. */
  push(output: ExecOutput): boolean {
    if (!this.#isAttached || this.#end) return true
    this.#queue.push(output)
    this.#waiting += output.data.length
    this.#wake?.()
    return this.#waiting < highWater
  }

  /** What was pushed before is still read; then the stream ends, or throws the error. */
  end(end: { readonly error?: unknown } = {}): void {
    this.#end ??= end
    this.#wake?.()
  }

  [Symbol.asyncIterator](): AsyncGenerator<ExecOutput, void, void> {
    if (this.#isFollowed) {
      throw new RathError('invalid-argument', 'The output of a command can be followed once; use its result.')
    }
    this.#isFollowed = true
    this.#isAttached = true
    return this.#read()
  }

  async *#read(): AsyncGenerator<ExecOutput, void, void> {
    try {
      while (true) {
        const batch = this.#queue
        this.#queue = []
        for (const output of batch) {
          yield output
          this.#waiting -= output.data.length
        }
        if (batch.length > 0) this.#drained()
        else if (this.#end) {
          if ('error' in this.#end) throw this.#end.error
          return
        } else {
          await new Promise<void>(resolve => {
            this.#wake = resolve
          })
        }
      }
    } finally {
      this.#isAttached = false
      this.#queue = []
      this.#drained()
    }
  }
}
