import type { ExecOutput } from '../../spec.ts'

const headerLength = 8

/** Takes the two streams of a command apart: pieces with a header each, a stream's number and a length. */
export class Demux {
  #header = Buffer.alloc(0)
  #stream: ExecOutput['stream'] = 'stdout'
  #left = 0

  read(data: Buffer): ExecOutput[] {
    const pieces: ExecOutput[] = []
    let at = 0
    while (at < data.length) {
      if (this.#left === 0) {
        const taken = data.subarray(at, at + headerLength - this.#header.length)
        this.#header = Buffer.concat([this.#header, taken])
        at += taken.length
        if (this.#header.length < headerLength) break
        this.#stream = this.#header[0] === 2 ? 'stderr' : 'stdout'
        this.#left = this.#header.readUInt32BE(4)
        this.#header = Buffer.alloc(0)
      } else {
        const piece = data.subarray(at, at + this.#left)
        at += piece.length
        this.#left -= piece.length
        pieces.push({ stream: this.#stream, data: piece })
      }
    }
    return pieces
  }
}
