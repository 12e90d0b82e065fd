import { createHash } from 'node:crypto'
import { closeSync, mkdirSync, openSync, readSync, renameSync, rmSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { crc32, deflateSync } from 'node:zlib'
import type { Digest } from '../../base/digest.ts'
import { newId } from '../../base/ids.ts'
import type { ObjectKind } from './object.ts'
import { zlibStored } from './zlib-stored.ts'

interface Packed {
  readonly id: Digest
  readonly offset: number
  readonly crc: number
}

const typeNumbers = { tree: 2, blob: 3 } as const
const headerLength = 12

/** Writes many objects as one pack of git's, version 2, with its index; nobody sees any of it before `finish`. */
export class PackWriter {
  readonly #folder: string
  readonly #temporary: string
  readonly #file: number
  readonly #compress: boolean
  readonly #objects: Packed[] = []
  #buffered: Buffer[] = []
  #bufferedBytes = 0
  #offset = headerLength

  /** `folder` is `objects/pack`. */
  constructor(folder: string, options: { readonly compress?: boolean } = {}) {
    this.#folder = folder
    this.#compress = options.compress ?? false
    mkdirSync(folder, { recursive: true, mode: 0o700 })
    this.#temporary = join(folder, `tmp_pack_${newId()}`)
    this.#file = openSync(this.#temporary, 'wx+', 0o400)
    // The number of objects is not known yet; `finish` writes the header again.
    this.#buffer(Buffer.alloc(headerLength))
  }

  get count(): number {
    return this.#objects.length
  }

  add(id: Digest, kind: ObjectKind, content: Uint8Array): void {
    const header = objectHeader(typeNumbers[kind], content.length)
    const body = this.#compress ? deflateSync(content) : zlibStored(content)
    this.#objects.push({ id, offset: this.#offset, crc: crc32(body, crc32(header)) })
    this.#offset += header.length + body.length
    this.#buffer(header)
    this.#buffer(body)
  }

  /** The path of the pack. */
  finish(): string {
    try {
      this.#flush()
      const header = Buffer.from('PACK\0\0\0\x02\0\0\0\0', 'latin1')
      header.writeUInt32BE(this.#objects.length, 8)
      writeSync(this.#file, header, 0, headerLength, 0)
      const sum = this.#checksum()
      writeSync(this.#file, sum, 0, sum.length, this.#offset)
      const path = join(this.#folder, `pack-${sum.toString('hex')}`)
      const index = `${this.#temporary}_idx`
      const file = openSync(index, 'wx', 0o400)
      const bytes = packIndex(this.#objects, sum)
      for (let at = 0; at < bytes.length; ) at += writeSync(file, bytes, at)
      closeSync(file)
      // Readers look for the index, so it comes last.
      renameSync(this.#temporary, `${path}.pack`)
      renameSync(index, `${path}.idx`)
      return `${path}.pack`
    } catch (error) {
      rmSync(this.#temporary, { force: true })
      rmSync(`${this.#temporary}_idx`, { force: true })
      throw error
    } finally {
      closeSync(this.#file)
    }
  }

  discard(): void {
    closeSync(this.#file)
    rmSync(this.#temporary, { force: true })
  }

  #buffer(bytes: Buffer): void {
    this.#buffered.push(bytes)
    this.#bufferedBytes += bytes.length
    if (this.#bufferedBytes > 1024 * 1024) this.#flush()
  }

  #flush(): void {
    const bytes = Buffer.concat(this.#buffered)
    for (let at = 0; at < bytes.length; ) at += writeSync(this.#file, bytes, at)
    this.#buffered = []
    this.#bufferedBytes = 0
  }

  #checksum(): Buffer {
    const hash = createHash('sha256')
    const buffer = Buffer.allocUnsafe(1024 * 1024)
    for (let at = 0; at < this.#offset; ) {
      const read = readSync(this.#file, buffer, 0, Math.min(buffer.length, this.#offset - at), at)
      hash.update(buffer.subarray(0, read))
      at += read
    }
    return hash.digest()
  }
}

/** Kind and length: four bits of the length in the first byte, seven in each that follows. */
function objectHeader(type: number, length: number): Buffer {
  const bytes: number[] = []
  let byte = (type << 4) | (length & 15)
  for (let rest = Math.floor(length / 16); ; rest = Math.floor(rest / 128)) {
    bytes.push(rest > 0 ? byte | 0x80 : byte)
    if (rest === 0) return Buffer.from(bytes)
    byte = rest & 0x7f
  }
}

/** The index, version 2: a table of first bytes, ids, checksums, offsets, offsets beyond 2 GB, and two sums. */
function packIndex(objects: readonly Packed[], packSum: Buffer): Buffer {
  const sorted = [...objects].sort((one, other) => (one.id < other.id ? -1 : 1))
  const large = sorted.filter(({ offset }) => offset >= 0x80000000)
  const table = 8 + 256 * 4
  const count = sorted.length
  const bytes = Buffer.alloc(table + count * 40 + large.length * 8 + 64)
  bytes.writeUInt32BE(0xff744f63, 0)
  bytes.writeUInt32BE(2, 4)
  let largeSeen = 0
  for (const [i, { id, crc, offset }] of sorted.entries()) {
    const first = Number.parseInt(id.slice(0, 2), 16)
    bytes.writeUInt32BE(i + 1, 8 + first * 4)
    bytes.write(id, table + i * 32, 'hex')
    bytes.writeUInt32BE(crc, table + count * 32 + i * 4)
    const isLarge = offset >= 0x80000000
    bytes.writeUInt32BE(isLarge ? 0x80000000 + largeSeen : offset, table + count * 36 + i * 4)
    if (isLarge) bytes.writeBigUInt64BE(BigInt(offset), table + count * 40 + largeSeen++ * 8)
  }
  for (let first = 1; first < 256; first++) {
    const before = bytes.readUInt32BE(4 + first * 4)
    if (bytes.readUInt32BE(8 + first * 4) === 0) bytes.writeUInt32BE(before, 8 + first * 4)
  }
  packSum.copy(bytes, bytes.length - 64)
  const sum = createHash('sha256').update(bytes.subarray(0, -32)).digest()
  sum.copy(bytes, bytes.length - 32)
  return bytes
}
