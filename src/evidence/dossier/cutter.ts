import { sha256 } from '../../base/digest.ts'
import type { Cut } from './dossier.ts'

export interface CutLimits {
  /** Characters of one text; 8,000 by default. */
  readonly text?: number
  /** Characters of all texts together, as nearly as cutting can make it; 6 million by default. */
  readonly total?: number
}

/** No text is cut shorter than this. */
const least = 240

/**
 * Keeps texts for a dossier, and cuts the long ones when all are known: the more there is, the less of each. Short texts are never cut for
 * the sake of long ones. Linear in all text.
 */
export class Cutter {
  readonly #limits: Required<CutLimits>
  readonly #kept: { text: string; characters?: number; digest?: string }[] = []

  readonly #clean: (text: string) => string

  /** `clean` takes secrets out before anything is cut: half a secret is not found any more. */
  constructor(limits: CutLimits = {}, clean: (text: string) => string = text => text) {
    this.#clean = clean
    this.#limits = { text: limits.text ?? 8_000, total: limits.total ?? 6_000_000 }
  }

  keep(text: string): Cut {
    const kept = { text: this.#clean(text) }
    this.#kept.push(kept)
    return kept
  }

  settle(): void {
    let limit = Math.max(least, this.#limits.text)
    while (limit > least && this.#sum(limit) > this.#limits.total) limit = Math.max(least, limit >> 1)
    for (const kept of this.#kept) {
      const { text } = kept
      if (text.length <= limit) continue
      kept.text = text.slice(0, limit).toWellFormed()
      kept.characters = text.length
      kept.digest = sha256(text.toWellFormed())
    }
  }

  #sum(limit: number): number {
    let sum = 0
    for (const { text } of this.#kept) sum += Math.min(text.length, limit)
    return sum
  }
}
