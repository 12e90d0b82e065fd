/** What OpenRath v1.2 does to find a memory: letters and digits as words, BM25 over every entry, whatever its score. */
export class OpenRathBm25 {
  readonly #docs: { readonly id: string; readonly counts: Map<string, number>; readonly length: number }[] =
    []
  readonly #have = new Map<string, number>()

  add(id: string, text: string): void {
    const words = tokenize(text)
    const counts = new Map<string, number>()
    for (const word of words) counts.set(word, (counts.get(word) ?? 0) + 1)
    for (const word of counts.keys()) this.#have.set(word, (this.#have.get(word) ?? 0) + 1)
    this.#docs.push({ id, counts, length: words.length })
  }

  find(query: string, limit: number): string[] {
    const asked = tokenize(query)
    if (asked.length === 0) return []
    const average = this.#docs.reduce((sum, { length }) => sum + length, 0) / this.#docs.length
    const scored = this.#docs.map(({ id, counts, length }) => {
      let score = 0
      for (const word of asked) {
        const count = counts.get(word)
        if (count === undefined) continue
        const have = this.#have.get(word) as number
        const rarity = Math.log(1 + (this.#docs.length - have + 0.5) / (have + 0.5))
        score += (rarity * count * (k1 + 1)) / (count + k1 * (1 - b + (b * length) / average))
      }
      return { id, score }
    })
    return scored
      .sort((x, y) => y.score - x.score)
      .slice(0, limit)
      .map(({ id }) => id)
  }
}

const k1 = 1.5
const b = 0.75

function tokenize(text: string): string[] {
  return text.toLowerCase().match(/[a-z0-9]+/g) ?? []
}
