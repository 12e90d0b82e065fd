/** Ids in order. Adding and removing cost nothing that grows; the next lookup puts in its place what was added since the last one. */
export class SortedIds {
  #sorted: string[] = []
  #added: string[] = []

  /** `id` is not among them. */
  add(id: string): void {
    this.#added.push(id)
  }

  delete(id: string): void {
    this.#settle()
    const at = this.#place(id)
    if (this.#sorted[at] === id) this.#sorted.splice(at, 1)
  }

  startingWith(prefix: string, limit: number): string[] {
    this.#settle()
    const found: string[] = []
    for (let at = this.#place(prefix); found.length < limit; at++) {
      const id = this.#sorted[at]
      if (id === undefined || !id.startsWith(prefix)) break
      found.push(id)
    }
    return found
  }

  /** Ids are mostly made in order, and then go to the end. */
  #settle(): void {
    if (this.#added.length === 0) return
    const added = this.#added.sort()
    this.#added = []
    if (added.length > 32 && (added[0] as string) < (this.#sorted.at(-1) ?? '')) {
      this.#sorted = this.#sorted.concat(added).sort()
      return
    }
    for (const id of added) {
      if (this.#sorted.length === 0 || id > (this.#sorted.at(-1) as string)) this.#sorted.push(id)
      else this.#sorted.splice(this.#place(id), 0, id)
    }
  }

  /** The index of the first that is not before `id`. */
  #place(id: string): number {
    let low = 0
    let high = this.#sorted.length
    while (low < high) {
      const middle = (low + high) >>> 1
      if ((this.#sorted[middle] as string) < id) low = middle + 1
      else high = middle
    }
    return low
  }
}
