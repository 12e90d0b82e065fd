import { closeSync, openSync, readFileSync, readSync, statSync, utimesSync } from 'node:fs'
import type { Digest } from '../../base/digest.ts'
import { damaged, type Found, inflate } from './object.ts'

const table = 8 + 256 * 4

/** A pack and its index, for reading. The packs that we write hold whole objects and no deltas. Finding one is O(log n). */
export class Pack {
  readonly path: string
  readonly count: number
  readonly #index: Buffer
  #file: number | undefined
  #offsets: Float64Array | undefined

  /** `path` ends in `.pack`. */
  constructor(path: string) {
    this.path = path
    this.#index = readFileSync(path.replace(/\.pack$/, '.idx'))
    this.count = this.#index.readUInt32BE(table - 4)
  }

  has(id: Digest): boolean {
    return this.#find(id) >= 0
  }

  ids(): Digest[] {
    return Array.from({ length: this.count }, (_, i) => this.#idAt(i))
  }

  /** As for a file of its own: makes it young. False when it is gone. */
  freshen(): boolean {
    try {
      const now = new Date()
      utimesSync(this.path, now, now)
      return true
    } catch {
      return false
    }
  }

  read(id: Digest): Found | undefined {
    const at = this.#find(id)
    if (at < 0) return undefined
    const start = this.#offsetAt(at)
    const bytes = Buffer.allocUnsafe(this.#endOf(start) - start)
    this.#file ??= openSync(this.path, 'r')
    for (let read = 0; read < bytes.length; ) {
      const more = readSync(this.#file, bytes, read, bytes.length - read, start + read)
      if (more === 0) throw damaged(id, this.path, 'the file ends before it does')
      read += more
    }
    let headerEnd = 0
    while ((bytes[headerEnd++] as number) & 0x80);
    const type = ((bytes[0] as number) >> 4) & 7
    if (type !== 2 && type !== 3) throw damaged(id, this.path, `it has the type ${type}, which is not ours`)
    const content = inflate(id, bytes.subarray(headerEnd), this.path)
    return { kind: type === 2 ? 'tree' : 'blob', content }
  }

  /** It was written in a hurry, without compressing: the second byte of a zlib stream tells. */
  get isStored(): boolean {
    const start = Buffer.alloc(16)
    const file = openSync(this.path, 'r')
    readSync(file, start, 0, 16, 12)
    closeSync(file)
    let headerEnd = 0
    while ((start[headerEnd++] as number) & 0x80);
    return start[headerEnd + 1] === 0x01
  }

  close(): void {
    if (this.#file !== undefined) closeSync(this.#file)
    this.#file = undefined
  }

  #find(id: Digest): number {
    const first = Number.parseInt(id.slice(0, 2), 16)
    let low = first === 0 ? 0 : this.#index.readUInt32BE(4 + first * 4)
    let high = this.#index.readUInt32BE(8 + first * 4)
    const wanted = Buffer.from(id, 'hex')
    while (low < high) {
      const middle = (low + high) >>> 1
      const at = table + middle * 32
      const order = this.#index.compare(wanted, 0, 32, at, at + 32)
      if (order === 0) return middle
      if (order < 0) low = middle + 1
      else high = middle
    }
    return -1
  }

  #idAt(i: number): Digest {
    return this.#index.toString('hex', table + i * 32, table + i * 32 + 32)
  }

  #offsetAt(i: number): number {
    const offset = this.#index.readUInt32BE(table + this.count * 36 + i * 4)
    if (offset < 0x80000000) return offset
    return Number(this.#index.readBigUInt64BE(table + this.count * 40 + (offset - 0x80000000) * 8))
  }

  /** Where the next object begins. */
  #endOf(start: number): number {
    if (this.#offsets === undefined) {
      const end = statSync(this.path).size - 32
      this.#offsets = Float64Array.from({ length: this.count + 1 }, (_, i) =>
        i < this.count ? this.#offsetAt(i) : end,
      ).sort()
    }
    let low = 0
    let high = this.#offsets.length
    while (low < high) {
      const middle = (low + high) >>> 1
      if ((this.#offsets[middle] as number) <= start) low = middle + 1
      else high = middle
    }
    return this.#offsets[low] as number
  }
}
