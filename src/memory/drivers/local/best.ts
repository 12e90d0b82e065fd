/** The highest so many of many, in a heap whose root is the lowest of them. */
export class Best {
  readonly #docs: Int32Array
  readonly #scores: Float32Array
  #size = 0

  constructor(room: number) {
    this.#docs = new Int32Array(room)
    this.#scores = new Float32Array(room)
  }

  /** What a score must exceed to come in. */
  get floor(): number {
    return this.#size < this.#docs.length ? 0 : (this.#scores[0] as number)
  }

  add(doc: number, score: number): void {
    if (this.#size < this.#docs.length) this.#rise(this.#size++, doc, score)
    else this.#sink(doc, score)
  }

  /** The highest first. */
  docs(): number[] {
    const places = Array.from({ length: this.#size }, (_, i) => i)
    places.sort((a, b) => (this.#scores[b] as number) - (this.#scores[a] as number))
    return places.map(i => this.#docs[i] as number)
  }

  #rise(from: number, doc: number, score: number): void {
    let i = from
    while (i > 0) {
      const parent = (i - 1) >> 1
      if ((this.#scores[parent] as number) <= score) break
      this.#put(i, this.#docs[parent] as number, this.#scores[parent] as number)
      i = parent
    }
    this.#put(i, doc, score)
  }

  #sink(doc: number, score: number): void {
    let i = 0
    for (;;) {
      let child = 2 * i + 1
      if (child >= this.#size) break
      if (child + 1 < this.#size && (this.#scores[child + 1] as number) < (this.#scores[child] as number))
        child++
      if ((this.#scores[child] as number) >= score) break
      this.#put(i, this.#docs[child] as number, this.#scores[child] as number)
      i = child
    }
    this.#put(i, doc, score)
  }

  #put(i: number, doc: number, score: number): void {
    this.#docs[i] = doc
    this.#scores[i] = score
  }
}
