import { cancelledError } from '../../../base/abort.ts'
import { RathError } from '../../../base/errors.ts'
import type { Embedder } from '../../embedding.ts'
import { chanceAbove, shareOfMeaning } from '../../likeness.ts'
import { normalised, product, sketchOf, toBytes, toFloats } from '../../sketch.ts'
import type { MemoryFilter } from '../../spec.ts'
import { unrelated } from '../../unrelated.ts'
import type { Database } from './database.ts'
import { accepting } from './filter.ts'
import type { Finding } from './find.ts'
import { VectorScan } from './vector-scan.ts'
import { numberIn, setNumber } from './word-index.ts'

/** Entries that are sent to the model at once. */
const batch = 64
/** A question waits for so many entries that have no vector yet. For more it does not, and says so. */
const waitedFor = 256
/** The nearest that join the hits by words. */
const nearest = 100

export interface Asked {
  readonly vector?: Float32Array
  readonly fellBack?: string
}

/** Keeps a vector for each entry, made behind the writer's back, and finds by them. */
export class Vectors {
  readonly #db: Database
  readonly #embedder: Embedder
  readonly #scan: VectorScan
  readonly #ending = new AbortController()
  #working: Promise<void> | undefined
  #problem: string | undefined
  #noise: readonly Float32Array[] = []

  private constructor(db: Database, embedder: Embedder) {
    this.#db = db
    this.#embedder = embedder
    this.#scan = new VectorScan(db)
  }

  /** Vectors of another model are of no use: they go, and new ones are made from the first entry on. */
  static async open(db: Database, embedder: Embedder): Promise<Vectors> {
    const stored = () => db.get("SELECT value FROM meta WHERE name = 'embedding'")?.value
    if ((await db.read(stored)) !== embedder.model) {
      await db.write(() => {
        if (stored() === embedder.model) return
        db.run('DELETE FROM vector')
        db.run('DELETE FROM vector_exact')
        db.run("INSERT OR REPLACE INTO meta VALUES ('embedding', ?)", embedder.model)
        setNumber(db, 'embedded', 0)
      })
    }
    const vectors = new Vectors(db, embedder)
    vectors.wake()
    return vectors
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
      const [vector] = await this.#embed([text], signal)
      await this.#catchUp()
      const left = await this.#db.read(() => this.#left())
      const { model } = this.#embedder
      if (this.#noise.length === 0)
        return { fellBack: this.#problem ?? `No entry has a vector of ${model} yet.` }
      if (left === 0) return { vector: vector as Float32Array }
      const why = this.#problem ?? `${model} has not been through all entries yet`
      return {
        vector: vector as Float32Array,
        fellBack: `${left} entries were looked for by words alone: ${why}.`,
      }
    } catch (error) {
      if (signal?.aborted) throw cancelledError(signal)
      return { fellBack: this.#said(error) }
    }
  }

  /** A convex sum of both scores, best first; of meaning alone without words. Inside a read. */
  join(
    finding: Finding,
    vector: Float32Array,
    filter: MemoryFilter,
    byWords: readonly { n: number; score: number }[] | undefined,
  ): { n: number; score: number }[] {
    const { accepts } = accepting(filter, finding)
    const words = new Map(byWords?.map(({ n, score }) => [n, score]))
    const also = byWords?.slice(0, nearest).map(({ n }) => n) ?? []
    const wordShare = byWords === undefined ? 0 : 1 - shareOfMeaning
    const likeness = this.#scan.nearest(vector, accepts, nearest, also)
    const chance = chanceAbove(this.#noise.map(other => product(vector, other)))
    const scored = [...new Set([...likeness.keys(), ...words.keys()])].map(n => {
      const meaning = likeness.has(n) ? chance(likeness.get(n) as number) : 0
      return { n, score: wordShare * (words.get(n) ?? 0) + (1 - wordShare) * meaning }
    })
    return scored.sort((a, b) => b.score - a.score || b.n - a.n)
  }

  async close(): Promise<void> {
    this.#ending.abort()
    await this.#working
  }

  async #catchUp(): Promise<void> {
    const left = await this.#db.read(() => this.#left())
    if (left === 0 && this.#noise.length > 0) return
    this.wake()
    if (left <= waitedFor) await this.#working
  }

  #left(): number {
    const rows = this.#db.get(
      'SELECT count(*) AS count FROM entry WHERE n > ? AND n NOT IN (SELECT n FROM vector)',
      numberIn(this.#db, 'embedded'),
    )
    return rows?.count as number
  }

  async #work(): Promise<void> {
    try {
      await this.#loadNoise()
      while (!this.#ending.signal.aborted && (await this.#embedBatch()));
      this.#problem = undefined
    } catch (error) {
      this.#problem = this.#said(error)
    }
  }

  async #embedBatch(): Promise<boolean> {
    const rows = await this.#db.read(() =>
      this.#db.all(
        'SELECT n, text FROM entry WHERE n > ? AND n NOT IN (SELECT n FROM vector) ORDER BY n LIMIT ?',
        numberIn(this.#db, 'embedded'),
        batch,
      ),
    )
    if (rows.length === 0) return false
    const vectors = await this.#embed(rows.map(row => row.text as string))
    await this.#db.write(() => {
      for (const [i, { n }] of rows.entries()) {
        if (this.#db.get('SELECT 1 FROM entry WHERE n = ?', n as number) === undefined) continue
        this.#keep(n as number, vectors[i] as Float32Array)
      }
      const done = Math.max(numberIn(this.#db, 'embedded'), (rows.at(-1)?.n as number) ?? 0)
      setNumber(this.#db, 'embedded', done)
    })
    return true
  }

  #keep(n: number, vector: Float32Array): void {
    if (n > 0)
      this.#db.run('INSERT OR IGNORE INTO vector (n, sketch) VALUES (?, ?)', n, toBytes(sketchOf(vector)))
    this.#db.run('INSERT OR IGNORE INTO vector_exact VALUES (?, ?)', n, toBytes(vector))
  }

  /** The vectors of sentences that nobody asks for, under numbers below zero. */
  async #loadNoise(): Promise<void> {
    if (this.#noise.length > 0) return
    const stored = await this.#db.read(() => this.#db.all('SELECT bytes FROM vector_exact WHERE n < 0'))
    if (stored.length === unrelated.length) {
      this.#noise = stored.map(row => toFloats(row.bytes as Uint8Array))
      return
    }
    const vectors = await this.#embed(unrelated)
    await this.#db.write(() => {
      for (const [i, vector] of vectors.entries()) this.#keep(-1 - i, vector)
    })
    this.#noise = vectors
  }

  async #embed(texts: readonly string[], signal: AbortSignal = this.#ending.signal): Promise<Float32Array[]> {
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

  #said(error: unknown): string {
    return `the embedding model ${this.#embedder.model} failed: ${error instanceof Error ? error.message : String(error)}`
  }
}
