import type { Digest } from '../../base/digest.ts'
import { idOf, type ObjectKind } from './object.ts'
import type { ObjectStore } from './objects.ts'
import type { PackWriter } from './pack-writer.ts'

/** A file each costs about 0.1 ms more than a place in a pack, and a pack about as much as 30 files. */
const mostLoose = 32
const mostLooseBytes = 8 * 1024 * 1024

interface Waiting {
  readonly kind: ObjectKind
  readonly content: Uint8Array
}

/** Objects that are kept together: a few as files of their own, many as one pack. None is promised before `finish`. */
export class ObjectBatch {
  readonly #objects: ObjectStore
  readonly #waiting = new Map<Digest, Waiting>()
  readonly #packed = new Set<Digest>()
  readonly #young = new Set<Digest>()
  readonly #listed = new Map<string, ReadonlySet<Digest>>()
  readonly #freshPacks = new Set<string>()
  #waitingBytes = 0
  #pack: PackWriter | undefined

  /** With `isPacked` also a few appear all at once. */
  constructor(objects: ObjectStore, { isPacked = false }: { readonly isPacked?: boolean } = {}) {
    this.#objects = objects
    if (isPacked) this.#pack = objects.packWriter()
  }

  /** `known` is one that was kept here before. */
  put(kind: ObjectKind, content: Uint8Array, known?: Digest): Digest {
    const id = idOf(kind, content)
    if (id === known) return id
    if (this.#waiting.has(id) || this.#packed.has(id) || this.#young.has(id)) return id
    if (this.#isThere(id)) {
      this.#young.add(id)
      return id
    }
    if (this.#pack === undefined) {
      this.#waiting.set(id, { kind, content })
      this.#waitingBytes += content.length
      if (this.#waiting.size > mostLoose || this.#waitingBytes > mostLooseBytes) this.#startPack()
    } else {
      this.#addTo(this.#pack, id, kind, content)
    }
    return id
  }

  /** Whether it is in the store; if so it stays a while. */
  keepsYoung(id: Digest): boolean {
    return this.#isThere(id)
  }

  recent(id: Digest): Buffer | undefined {
    return this.#objects.recent.get(id)?.content
  }

  /** Whether it waits here, and is not in the store. */
  holds(id: Digest): boolean {
    return this.#waiting.has(id) || this.#packed.has(id)
  }

  finish(): void {
    if (this.#pack?.count === 0) this.#pack.discard()
    else if (this.#pack !== undefined) this.#pack.finish()
    else for (const [id, object] of this.#waiting) this.#write(id, object)
    this.#waiting.clear()
    this.#pack = undefined
  }

  #write(id: Digest, { kind, content }: Waiting): void {
    this.#objects.loose.write(id, kind, content)
    this.#objects.recent.add(id, { kind, content: asBuffer(content) })
  }

  discard(): void {
    this.#pack?.discard()
    this.#waiting.clear()
    this.#pack = undefined
  }

  #startPack(): void {
    this.#pack = this.#objects.packWriter()
    for (const [id, { kind, content }] of this.#waiting) this.#addTo(this.#pack, id, kind, content)
    this.#waiting.clear()
  }

  #addTo(pack: PackWriter, id: Digest, kind: ObjectKind, content: Uint8Array): void {
    pack.add(id, kind, content)
    this.#packed.add(id)
  }

  /** Asks the disk for each id while they are few, and for whole folders of ids once they are many. */
  #isThere(id: Digest): boolean {
    if (this.#pack === undefined) return this.#objects.keepYoung(id)
    const beginning = id.slice(0, 2)
    let listed = this.#listed.get(beginning)
    if (listed === undefined) {
      listed = new Set(this.#objects.loose.list(beginning))
      this.#listed.set(beginning, listed)
    }
    if (listed.has(id)) return this.#objects.loose.has(id) && this.#objects.loose.freshen(id)
    const pack = this.#objects.packs().find(pack => pack.has(id))
    if (pack === undefined) return false
    if (!this.#freshPacks.has(pack.path)) {
      if (!pack.freshen()) return false
      this.#freshPacks.add(pack.path)
    }
    return true
  }
}

/** Not a copy: what was given to be kept is not changed any more. */
function asBuffer(content: Uint8Array): Buffer {
  return Buffer.isBuffer(content)
    ? content
    : Buffer.from(content.buffer, content.byteOffset, content.byteLength)
}
