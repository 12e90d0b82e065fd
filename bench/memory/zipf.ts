const vocabulary = 97_000
const syllables =
  'ba be bi bo bu da de di do du fa fe ka ke ki ko la le li lo lu ma me mi mo na ne no pa pe po ra re ri ro sa se si so ta te ti to va ve vi za zo zu'.split(
    ' ',
  )

/** Texts of made-up words, some of them common and most of them rare, as in a language. The same ones in every run. */
export class Zipf {
  #state = 12345
  readonly #sums = new Float64Array(vocabulary)

  constructor() {
    let sum = 0
    for (let rank = 0; rank < vocabulary; rank++) {
      sum += 1 / (rank + 10) ** 1.05
      this.#sums[rank] = sum
    }
  }

  /** About so many words. */
  text(words: number): string {
    const count = words - 8 + this.below(17)
    return Array.from({ length: count }, () => this.word()).join(' ')
  }

  word(): string {
    const wanted = this.#random() * (this.#sums[vocabulary - 1] as number)
    let low = 0
    let high = vocabulary - 1
    while (low < high) {
      const middle = (low + high) >> 1
      if ((this.#sums[middle] as number) < wanted) low = middle + 1
      else high = middle
    }
    let word = ''
    for (let rest = low + syllables.length; rest > 0; rest = Math.floor(rest / syllables.length))
      word += syllables[rest % syllables.length]
    return word
  }

  below(limit: number): number {
    return Math.floor(this.#random() * limit)
  }

  #random(): number {
    this.#state = (Math.imul(this.#state, 1664525) + 1013904223) >>> 0
    return this.#state / 2 ** 32
  }
}
