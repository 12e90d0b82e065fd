/** What is kept of a stream: all of it up to a limit, else its first and last halves, whatever its length. */
export class OutputKeeper {
  readonly #head: GrowingBytes
  readonly #tailLimit: number
  /** The last bytes in a ring; made when the head is full. */
  #ring: Uint8Array | undefined
  #behindHead = 0

  constructor(limit: number) {
    this.#head = new GrowingBytes(Math.ceil(limit / 2))
    this.#tailLimit = Math.floor(limit / 2)
  }

  add(data: Uint8Array): void {
    let rest = data.subarray(this.#head.add(data))
    if (rest.length === 0) return
    const size = this.#tailLimit
    this.#ring ??= new Uint8Array(size)
    const skipped = Math.max(0, rest.length - size)
    rest = rest.subarray(skipped)
    this.#behindHead += skipped
    const at = size === 0 ? 0 : this.#behindHead % size
    const first = rest.subarray(0, size - at)
    this.#ring.set(first, at)
    this.#ring.set(rest.subarray(first.length), 0)
    this.#behindHead += rest.length
  }

  get truncated(): boolean {
    return this.#behindHead > this.#tailLimit
  }

  /** Where bytes are missing stands a line that says how many. Characters are not cut in half. */
  bytes(): Uint8Array {
    const head = this.#head.bytes
    if (this.#ring === undefined) return head
    if (!this.truncated) return join(head, this.#ring.subarray(0, this.#behindHead))
    const at = this.#tailLimit === 0 ? 0 : this.#behindHead % this.#tailLimit
    const tail = wholeStart(join(this.#ring.subarray(at), this.#ring.subarray(0, at)))
    const start = wholeEnd(head)
    const missing = head.length + this.#behindHead - start.length - tail.length
    return join(start, new TextEncoder().encode(`\n[… ${missing} bytes are left out here …]\n`), tail)
  }
}

/** Bytes up to a limit, in memory that grows with them. */
class GrowingBytes {
  readonly #limit: number
  #memory = new Uint8Array(0)
  #length = 0

  constructor(limit: number) {
    this.#limit = limit
  }

  get bytes(): Uint8Array {
    return this.#memory.slice(0, this.#length)
  }

  /** How many of them fitted. */
  add(data: Uint8Array): number {
    const taken = Math.min(data.length, this.#limit - this.#length)
    if (this.#length + taken > this.#memory.length) {
      const size = Math.min(this.#limit, Math.max(4096, 2 * (this.#length + taken)))
      const grown = new Uint8Array(size)
      grown.set(this.#memory)
      this.#memory = grown
    }
    this.#memory.set(data.subarray(0, taken), this.#length)
    this.#length += taken
    return taken
  }
}

function join(...pieces: readonly Uint8Array[]): Uint8Array {
  const whole = new Uint8Array(pieces.reduce((sum, piece) => sum + piece.length, 0))
  let at = 0
  for (const piece of pieces) {
    whole.set(piece, at)
    at += piece.length
  }
  return whole
}

const isContinuation = (byte: number | undefined) => byte !== undefined && (byte & 0xc0) === 0x80

/** Without the beginning of a UTF-8 character whose rest is cut off. */
function wholeEnd(bytes: Uint8Array): Uint8Array {
  let start = bytes.length - 1
  while (start > bytes.length - 4 && isContinuation(bytes[start])) start--
  const lead = bytes[start] ?? 0
  const length = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : lead >= 0xc0 ? 2 : 1
  return start >= 0 && start + length > bytes.length ? bytes.subarray(0, start) : bytes
}

/** Without the end of a UTF-8 character whose beginning is cut off. */
function wholeStart(bytes: Uint8Array): Uint8Array {
  let start = 0
  while (start < 3 && isContinuation(bytes[start])) start++
  return bytes.subarray(start)
}
