import { cancelledError } from '../base/abort.ts'
import { RathError } from '../base/errors.ts'
import type { Embedder } from './embedding.ts'
import { chanceAbove, shareOfMeaning } from './likeness.ts'
import { normalised, product } from './sketch.ts'

/** Entries that are sent to the model at once. */
export const batch = 64
/** The nearest that join the hits by words. */
export const nearest = 100
/** A question waits for so many entries that have no vector yet. For more it does not, and says so. */
const waitedFor = 256

export interface Asked {
  readonly vector?: Float32Array
  readonly fellBack?: string
}

/** Has a vector made for each entry, behind the writer's back. Where they are kept and compared is the driver's. */
export abstract class VectorMaker {
  readonly #embedder: Embedder
  readonly #ending = new AbortController()
  #working: Promise<void> | undefined
  #problem: string | undefined
  #noise: readonly Float32Array[] = []

  protected constructor(embedder: Embedder) {
    this.#embedder = embedder
  }

  /** How many entries have no vector yet. */
  protected abstract left(): Promise<number>
  /** Keeps vectors of the next entries that have none; false when there are no such. */
  protected abstract embedBatch(): Promise<boolean>
  /** The vectors of sentences that nobody asks for. */
  protected abstract loadNoise(): Promise<readonly Float32Array[]>

  protected get model(): string {
    return this.#embedder.model
  }

  /** There may be new entries. */
  wake(): void {
    if (this.#working !== undefined || this.#ending.signal.aborted) return
    this.#working = this.#work().finally(() => {
      this.#working = undefined
    })
  }

  /** The vector of a question; without one, why. */
  async ask(text: string, signal: AbortSignal | undefined): Promise<Asked> {
    if (signal?.aborted) throw cancelledError(signal)
    try {
      const [vector] = (await this.embed([text], signal)) as [Float32Array]
      const left = await this.#catchUp()
      if (this.#noise.length === 0)
        return { fellBack: this.#problem ?? `No entry has a vector of ${this.model} yet.` }
      if (left === 0) return { vector }
      const why = this.#problem ?? `${this.model} has not been through all entries yet`
      return { vector, fellBack: `${left} entries were looked for by words alone: ${why}.` }
    } catch (error) {
      if (signal?.aborted) throw cancelledError(signal)
      return { fellBack: this.#said(error) }
    }
  }

  async close(): Promise<void> {
    this.#ending.abort()
    await this.#working
  }

  /** A convex sum of both scores, of each entry that has one; without words, of meaning alone. */
  protected joined<N>(
    vector: Float32Array,
    likeness: ReadonlyMap<N, number>,
    byWords: readonly { readonly n: N; readonly score: number }[] | undefined,
  ): { n: N; score: number }[] {
    const chance = chanceAbove(this.#noise.map(other => product(vector, other)))
    const words = new Map(byWords?.map(({ n, score }) => [n, score]))
    const wordShare = byWords === undefined ? 0 : 1 - shareOfMeaning
    return [...new Set([...likeness.keys(), ...words.keys()])].map(n => {
      const like = likeness.get(n)
      const meaning = like === undefined ? 0 : chance(like)
      return { n, score: wordShare * (words.get(n) ?? 0) + (1 - wordShare) * meaning }
    })
  }

  protected async embed(
    texts: readonly string[],
    signal: AbortSignal = this.#ending.signal,
  ): Promise<Float32Array[]> {
    const vectors = await this.#embedder.embed(texts, { signal })
    const dimensions = this.#embedder.dimensions ?? this.#noise[0]?.length ?? vectors[0]?.length
    if (vectors.length !== texts.length || vectors.some(vector => vector.length !== dimensions)) {
      throw new RathError(
        'model-malformed',
        `${vectors.length} vectors came back for ${texts.length} texts, or not all have ${dimensions} numbers`,
      )
    }
    return vectors.map(normalised)
  }

  /** How many are left after waiting for a few. */
  async #catchUp(): Promise<number> {
    const left = await this.left()
    if (left === 0 && this.#noise.length > 0) return 0
    this.wake()
    if (left > waitedFor) return left
    await this.#working
    return this.left()
  }

  async #work(): Promise<void> {
    try {
      if (this.#noise.length === 0) this.#noise = await this.loadNoise()
      while (!this.#ending.signal.aborted && (await this.embedBatch()));
      this.#problem = undefined
    } catch (error) {
      this.#problem = this.#said(error)
    }
  }

  #said(error: unknown): string {
    return `the embedding model ${this.model} failed: ${error instanceof Error ? error.message : String(error)}`
  }
}
