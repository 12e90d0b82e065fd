import type { Digest } from '../../base/digest.ts'
import type { Found } from './object.ts'

/** Larger ones are read again. */
const mostOfOne = 64 * 1024
const mostOfAll = 8 * 1024 * 1024

/** Objects that were just written or read, and are about to be looked at again: a call compares the trees that it has just kept. */
export class RecentObjects {
  readonly #objects = new Map<Digest, Found>()
  #bytes = 0

  get(id: Digest): Found | undefined {
    return this.#objects.get(id)
  }

  /** `found` is what its digest says, and nobody changes it. */
  add(id: Digest, found: Found): void {
    const { length } = found.content
    if (length > mostOfOne || this.#objects.has(id)) return
    this.#objects.set(id, found)
    this.#bytes += length
    for (const [old, { content }] of this.#objects) {
      if (this.#bytes <= mostOfAll) break
      this.#objects.delete(old)
      this.#bytes -= content.length
    }
  }

  clear(): void {
    this.#objects.clear()
    this.#bytes = 0
  }
}
