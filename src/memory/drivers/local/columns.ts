import type { Row } from './database.ts'

/** Entries of a block. A block is written whole. */
export const blockSize = 4_096

const alive = 1
export const rejected = 2
export const ends = 4
/** Its neighbours in its series do not stand beside it. */
export const scattered = 8

/** Behind the fixed columns of a block: pairs of number and time, for the entries that end by themselves. */
const bytesPerEntry = 8 + 8 + 4 * 4 + 2 + 1

/**
 * What ranking and filters have to know of every entry, in arrays by its number: small enough to hold a million, and to load in a few
 * milliseconds. A forgotten entry has no flags.
 */
export class Columns {
  at = new Float64Array(0)
  place = new Float64Array(0)
  scope = new Uint32Array(0)
  category = new Uint32Array(0)
  lane = new Uint32Array(0)
  series = new Uint32Array(0)
  length = new Uint16Array(0)
  flags = new Uint8Array(0)
  readonly expires = new Map<number, number>()
  /** One more than the highest number in use. */
  size = 0
  live = 0
  totalLength = 0

  set(n: number, row: Row): void {
    this.remove(n)
    this.#reserve(n + 1)
    this.at[n] = row.at as number
    this.place[n] = row.place as number
    this.scope[n] = row.scope as number
    this.category[n] = row.category as number
    this.lane[n] = row.lane as number
    this.series[n] = row.series as number
    this.length[n] = Math.min(row.length as number, 0xffff)
    const { expires } = row
    if (expires !== null) this.expires.set(n, expires as number)
    this.flags[n] =
      alive | (row.rejected ? rejected : 0) | (expires === null ? 0 : ends) | (row.scattered ? scattered : 0)
    this.live++
    this.totalLength += this.length[n]
  }

  remove(n: number): void {
    if (n >= this.size || (this.flags[n] as number) === 0) return
    this.flags[n] = 0
    this.expires.delete(n)
    this.live--
    this.totalLength -= this.length[n] as number
  }

  encodeBlock(block: number): Uint8Array {
    const start = block * blockSize
    this.#reserve(start + blockSize)
    this.size = Math.max(this.size, start)
    const ending: number[] = []
    for (let n = start; n < start + blockSize; n++) {
      if ((this.flags[n] as number) & ends) ending.push(n, this.expires.get(n) as number)
    }
    const bytes = new Uint8Array(blockSize * bytesPerEntry + ending.length * 8)
    let offset = 0
    for (const column of this.#columns()) {
      const part = bytesOf(column, start)
      bytes.set(part, offset)
      offset += part.length
    }
    bytes.set(new Uint8Array(new Float64Array(ending).buffer), offset)
    return bytes
  }

  decodeBlock(block: number, bytes: Uint8Array): void {
    const start = block * blockSize
    this.#reserve(start + blockSize)
    for (let n = start; n < start + blockSize; n++) this.remove(n)
    let offset = 0
    for (const column of this.#columns()) {
      const part = bytesOf(column, start)
      part.set(bytes.subarray(offset, offset + part.length))
      offset += part.length
    }
    const ending = new Float64Array(bytes.slice(offset).buffer)
    for (let i = 0; i < ending.length; i += 2) this.expires.set(ending[i] as number, ending[i + 1] as number)
    for (let n = start; n < start + blockSize; n++) {
      if (this.flags[n] === 0) continue
      this.live++
      this.totalLength += this.length[n] as number
    }
  }

  #columns() {
    return [
      this.at,
      this.place,
      this.scope,
      this.category,
      this.lane,
      this.series,
      this.length,
      this.flags,
    ] as const
  }

  #reserve(size: number): void {
    this.size = Math.max(this.size, size)
    if (size <= this.flags.length) return
    const room = Math.max(blockSize, Math.ceil((size * 1.25) / blockSize) * blockSize)
    this.at = grown(this.at, new Float64Array(room))
    this.place = grown(this.place, new Float64Array(room))
    this.scope = grown(this.scope, new Uint32Array(room))
    this.category = grown(this.category, new Uint32Array(room))
    this.lane = grown(this.lane, new Uint32Array(room))
    this.series = grown(this.series, new Uint32Array(room))
    this.length = grown(this.length, new Uint16Array(room))
    this.flags = grown(this.flags, new Uint8Array(room))
  }
}

type Column = Float64Array | Uint32Array | Uint16Array | Uint8Array

function bytesOf(column: Column, start: number): Uint8Array {
  const width = column.BYTES_PER_ELEMENT
  return new Uint8Array(column.buffer, column.byteOffset + start * width, blockSize * width)
}

function grown<C extends Column>(from: Column, to: C): C {
  to.set(from as never)
  return to
}
