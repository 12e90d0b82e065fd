import { createInterface, type Interface } from 'node:readline'

export interface LinesOptions {
  readonly input: NodeJS.ReadStream
  readonly output: NodeJS.WriteStream
  /** Ctrl-C on a terminal, whatever is going on. */
  onInterrupt(): void
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
      this.#wanted?.(undefined)
    })
    this.#interface.on('SIGINT', onInterrupt)
  }

  get isTerminal(): boolean {
    return this.#isTerminal
  }

  /** The next line; undefined when there are no more. `prefill` is there to be changed. */
  async read(prompt: string, prefill = ''): Promise<string | undefined> {
    const typed = this.#waiting.shift()
    if (typed !== undefined) return typed
    if (this.#isOver) return undefined
    const line = new Promise<string | undefined>(resolve => {
      this.#wanted = resolve
    })
    if (this.#isTerminal) {
      this.#interface.setPrompt(prompt)
      this.#interface.prompt()
      if (prefill) this.#interface.write(prefill)
    }
    return line
  }

  /** Throws away what was typed on this line, and asks again. */
  clear(): void {
    this.#interface.write(null, { ctrl: true, name: 'u' })
    if (this.#wanted) this.#interface.prompt()
  }

  [Symbol.dispose](): void {
    this.#interface.close()
  }

  #give(line: string): void {
    const wanted = this.#wanted
    this.#wanted = undefined
    if (wanted) wanted(line)
    else this.#waiting.push(line)
  }
}
