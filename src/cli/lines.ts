import { createInterface, type Interface } from 'node:readline'

export interface LinesOptions {
  readonly input: NodeJS.ReadStream
  readonly output: NodeJS.WriteStream
  /** Ctrl-C on a terminal, whatever is going on. */
  onInterrupt(): void
}

export interface ReadOptions {
  /** What is on the line to begin with, to be changed. */
  readonly prefill?: string
  readonly signal?: AbortSignal
  /** On a terminal, what was typed before this was asked does not answer it; it stays for the next that takes any line. */
  readonly fresh?: boolean
}

/** Lines that a person types, or that a file holds; those typed ahead wait. */
export class Lines implements Disposable {
  readonly #interface: Interface
  readonly #waiting: string[] = []
  readonly #isTerminal: boolean
  #wanted: ((line: string | undefined) => void) | undefined
  #isOver = false

  constructor({ input, output, onInterrupt }: LinesOptions) {
    this.#isTerminal = Boolean(input.isTTY && output.isTTY)
    this.#interface = createInterface({ input, output, terminal: this.#isTerminal })
    this.#interface.on('line', line => this.#give(line))
    this.#interface.on('close', () => {
      this.#isOver = true
      this.#give(undefined)
    })
    this.#interface.on('SIGINT', onInterrupt)
  }

  get isTerminal(): boolean {
    return this.#isTerminal
  }

  /** The next line; undefined when there are no more, or nobody needs it any more. */
  async read(
    prompt: string,
    { prefill = '', signal, fresh = false }: ReadOptions = {},
  ): Promise<string | undefined> {
    const typed = fresh && this.#isTerminal ? undefined : this.#waiting.shift()
    if (typed !== undefined) return typed
    if (this.#isOver || signal?.aborted) return undefined
    const { promise, resolve } = Promise.withResolvers<string | undefined>()
    this.#wanted = resolve
    const stop = () => this.#give(undefined)
    signal?.addEventListener('abort', stop, { once: true })
    if (this.#isTerminal) {
      this.#interface.setPrompt(prompt)
      this.#interface.prompt()
      if (prefill) this.#interface.write(prefill)
    }
    return promise.finally(() => signal?.removeEventListener('abort', stop))
  }

  /** Throws away what was typed on this line, and asks again. */
  clear(): void {
    this.#interface.write(null, { ctrl: true, name: 'u' })
    if (this.#wanted) this.#interface.prompt()
  }

  [Symbol.dispose](): void {
    this.#interface.close()
  }

  #give(line: string | undefined): void {
    const wanted = this.#wanted
    this.#wanted = undefined
    if (wanted) wanted(line)
    else if (line !== undefined) this.#waiting.push(line)
  }
}
