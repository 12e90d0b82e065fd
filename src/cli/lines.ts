import { closeSync, openSync } from 'node:fs'
import { createInterface, type Interface } from 'node:readline'
import { ReadStream, WriteStream } from 'node:tty'
import { platformOf } from '../base/platform.ts'

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
    const isFresh = fresh && this.#isTerminal
    const typed = isFresh ? undefined : this.#waiting.shift()
    if (typed !== undefined) return typed
    if (isFresh) await this.#dropTyped()
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

  /** What was typed before now is taken from the terminal, and the line that it began is emptied. */
  async #dropTyped(): Promise<void> {
    await polled()
    if (this.#interface.line === '') return
    this.#interface.write(null, { ctrl: true, name: 'e' })
    this.#interface.write(null, { ctrl: true, name: 'u' })
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

/**
 * The terminal of whoever started the command, taken at once: what is typed before a question is thrown away, and what is piped into the command answers none.
 */
export class Terminal implements Disposable {
  readonly output: NodeJS.WriteStream
  readonly #input: NodeJS.ReadStream
  readonly #isOwn: boolean
  readonly #onInterrupt: () => void
  #lines: Lines | undefined

  /** Undefined where there is none. */
  static open(
    stdin: NodeJS.ReadStream,
    stdout: NodeJS.WriteStream,
    onInterrupt: () => void,
  ): Terminal | undefined {
    if (stdin.isTTY && stdout.isTTY) return new Terminal(stdin, stdout, false, onInterrupt)
    if (platformOf().name === 'win32') return undefined
    const opened: number[] = []
    try {
      for (const flags of ['r', 'w']) opened.push(openSync('/dev/tty', flags))
      const [input = -1, output = -1] = opened
      return new Terminal(new ReadStream(input), new WriteStream(output), true, onInterrupt)
    } catch {
      for (const fd of opened) closeSync(fd)
      return undefined
    }
  }

  private constructor(
    input: NodeJS.ReadStream,
    output: NodeJS.WriteStream,
    isOwn: boolean,
    onInterrupt: () => void,
  ) {
    this.#input = input
    this.output = output
    this.#isOwn = isOwn
    this.#onInterrupt = onInterrupt
    this.#listen()
  }

  /** Lines that are typed from now on. */
  async ask(): Promise<Lines> {
    if (this.#lines === undefined) {
      await polled()
      this.#input.off('data', this.#drop)
      this.#lines = new Lines({ input: this.#input, output: this.output, onInterrupt: this.#onInterrupt })
    }
    return this.#lines
  }

  /** Nothing is asked for the time being. */
  rest(): void {
    this.#lines?.[Symbol.dispose]()
    this.#lines = undefined
    this.#listen()
  }

  [Symbol.dispose](): void {
    this.#lines?.[Symbol.dispose]()
    this.#input.off('data', this.#drop)
    this.#input.setRawMode(false)
    this.#input.pause()
    if (!this.#isOwn) return
    this.#input.destroy()
    this.output.destroy()
  }

  #listen(): void {
    this.#input.setRawMode(true)
    this.#input.on('data', this.#drop).resume()
  }

  readonly #drop = (typed: Buffer | string): void => {
    if (typed.includes('\u0003')) this.#onInterrupt()
  }
}

/** When everything that has arrived on a terminal by now has been handed out. */
async function polled(): Promise<void> {
  for (let i = 0; i < 3; i++) await new Promise(resolve => setImmediate(resolve))
}
