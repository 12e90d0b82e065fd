import { cancelledError, LinkedAbort, untilAbort } from '../base/abort.ts'
import { RathError } from '../base/errors.ts'
import type { Embedder } from './embedding.ts'
import { normalised, product } from './sketch.ts'
import { unrelated } from './unrelated.ts'

/** Entries that are sent to the model at once. */
export const batch = 64
/** The nearest that join the hits by words. */
export const nearest = 100
/** A question waits for so many entries that have no vector yet. For more it does not, and says so. */
const waitedFor = 256
/** So long a question waits for the model in all; then it is looked for by words. */
const patienceMs = 30_000
/** Models refuse texts of more than some thousand tokens; the beginning says what a long one is about. In UTF-16 units. */
const longestEmbedded = 8_000

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

  /** The vector of a question; without one, why. A model that hangs is a model that failed. */
  async ask(text: string, signal: AbortSignal | undefined): Promise<Asked> {
    if (signal?.aborted) throw cancelledError(signal)
    using limited = new LinkedAbort(signal, this.#ending.signal)
    const late = new Error(`it did not answer within ${patienceMs / 1_000} s`)
    const timer = setTimeout(() => limited.abort(late), patienceMs)
    try {
      return await untilAbort(this.#ask(text, limited.signal), limited.signal)
    } catch (error) {
      if (signal?.aborted) throw cancelledError(signal)
      return { fellBack: this.#said(limited.signal.aborted ? limited.signal.reason : error) }
    } finally {
      clearTimeout(timer)
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

  /** Vectors of entries; none for one that the model refuses although it answers, so that the others do not wait for it. */
  protected async embedEach(texts: readonly string[]): Promise<readonly (Float32Array | undefined)[]> {
    try {
      return await this.embed(texts)
    } catch (error) {
      if (this.#ending.signal.aborted || !(await this.#answers())) throw error
      if (texts.length === 1) return [undefined]
      const half = texts.length >> 1
      const first = await this.embedEach(texts.slice(0, half))
      return [...first, ...(await this.embedEach(texts.slice(half)))]
    }
  }

  protected async embed(
    texts: readonly string[],
    signal: AbortSignal = this.#ending.signal,
  ): Promise<Float32Array[]> {
    const short = texts.map(text => text.slice(0, longestEmbedded).toWellFormed())
    const vectors = await untilAbort(this.#embedder.embed(short, { signal }), signal)
    const dimensions = this.#embedder.dimensions ?? this.#noise[0]?.length ?? vectors[0]?.length
    const isVector = (vector: readonly number[]) =>
      vector.length === dimensions && dimensions > 0 && vector.every(Number.isFinite)
    if (vectors.length === texts.length && vectors.every(isVector)) return vectors.map(normalised)
    throw malformed(vectors.length, texts.length, dimensions)
  }

  async #answers(): Promise<boolean> {
    try {
      await this.embed(unrelated.slice(0, 1))
      return true
    } catch {
      return false
    }
  }

  async #ask(text: string, signal: AbortSignal): Promise<Asked> {
    const [vector] = (await this.embed([text], signal)) as [Float32Array]
    const left = await this.#catchUp()
    if (this.#noise.length === 0)
      return { fellBack: this.#problem ?? `No entry has a vector of ${this.model} yet.` }
    // Those of earlier days were not known yet when it was made.
    if (this.#noise[0]?.length !== vector.length) throw malformed(1, 1, this.#noise[0]?.length)
    if (left === 0) return { vector }
    const why = this.#problem ?? `${this.model} has not been through all entries yet`
    return { vector, fellBack: `${left} entries were looked for by words alone: ${why}.` }
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

function malformed(came: number, asked: number, dimensions: number | undefined): RathError {
  return new RathError(
    'model-malformed',
    `${came} vectors came back for ${asked} texts, or not all are ${dimensions} numbers: a model that has changed needs another name`,
  )
}

/** What meaning counts for beside words. */
const shareOfMeaning = 0.4

/**
 * From the likeness of two vectors to a chance that the one answers the other. Models differ in what a likeness of 0.5 means, so it is measured
 * against that of sentences which have nothing to do with the question: five standard deviations above their mean is an even chance.
 */
function chanceAbove(noise: readonly number[]): (likeness: number) => number {
  const mean = noise.reduce((sum, value) => sum + value, 0) / noise.length
  const variance = noise.reduce((sum, value) => sum + (value - mean) ** 2, 0) / noise.length
  const deviation = Math.max(Math.sqrt(variance), 0.03)
  return likeness => 1 / (1 + Math.exp(1.2 * (5 - (likeness - mean) / deviation)))
}
