/** Longer than any first line of ours. */
const longest = 4096

/** Takes the first line out of a stream: what the script says of itself before the command begins. */
export class FirstLine {
  /** Resolves when the line is there, or never will be. */
  readonly word: Promise<void>
  /** The word behind the mark; undefined when the line is none of ours. */
  said: string | undefined
  /** The pipe that the command inherits. */
  pipe = ''
  /** The line as it is. */
  text = ''
  readonly #mark: string
  #waiting: Uint8Array | undefined = new Uint8Array(0)
  #resolve: () => void

  constructor(mark: string) {
    this.#mark = mark
    const { promise, resolve } = Promise.withResolvers<void>()
    this.word = promise
    this.#resolve = resolve
  }

  /** What of the data lies behind the first line. */
  rest(data: Uint8Array): Uint8Array {
    if (this.#waiting === undefined) return data
    const seen = Buffer.concat([this.#waiting, data])
    this.#waiting = seen
    const end = seen.indexOf(10)
    if (end < 0 && seen.length < longest) return new Uint8Array(0)
    this.#read(seen.toString('utf8', 0, end < 0 ? seen.length : end))
    return end < 0 ? new Uint8Array(0) : seen.subarray(end + 1)
  }

  /** Nothing more will come. */
  end(): void {
    if (this.#waiting !== undefined) this.#read(new TextDecoder().decode(this.#waiting))
  }

  #read(line: string): void {
    this.#waiting = undefined
    this.text = line
    const [mark, said, pipe = ''] = line.split(' ')
    if (mark === this.#mark) {
      this.said = said
      this.pipe = pipe
    }
    this.#resolve()
  }
}
