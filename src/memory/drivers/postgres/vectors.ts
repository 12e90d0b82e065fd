import { cancelledError } from '../../../base/abort.ts'
import { RathError } from '../../../base/errors.ts'
import type { Embedder } from '../../embedding.ts'
import { chanceAbove, shareOfMeaning } from '../../likeness.ts'
import { normalised, product } from '../../sketch.ts'
import type { MemoryFilter } from '../../spec.ts'
import { unrelated } from '../../unrelated.ts'
import { matching } from './filter.ts'
import type { Finding, Scored } from './find.ts'
import type { Pool } from './pool.ts'

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

/** A vector for each entry in pgvector's own type, made behind the writer's back. The server compares all of a store's, exactly. */
export class Vectors {
  readonly #pool: Pool
  readonly #place: number
  readonly #embedder: Embedder
  readonly #ending = new AbortController()
  #working: Promise<void> | undefined
  #problem: string | undefined
  #noise: readonly Float32Array[] = []

  private constructor(pool: Pool, place: number, embedder: Embedder) {
    this.#pool = pool
    this.#place = place
    this.#embedder = embedder
  }

  /** Why there can be no vectors on this server, or the vectors. */
  static async open(pool: Pool, place: number, embedder: Embedder): Promise<Vectors | string> {
    const missing = await makeTable(pool)
    if (missing !== undefined) return missing
    await pool.query('DELETE FROM openrath_memory.vector WHERE place = $1 AND model <> $2', [
      place,
      embedder.model,
    ])
    const vectors = new Vectors(pool, place, embedder)
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
    try {
      const [vector] = await this.#embed([text], signal)
      const { model } = this.#embedder
      const left = await this.#catchUp()
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

  /** A convex sum of both scores, best first. */
  async join(
    { queries, place, now }: Finding,
    vector: Float32Array,
    filter: MemoryFilter,
    byWords: readonly Scored[],
    mode: 'auto' | 'vectors',
  ): Promise<Scored[]> {
    const also = byWords.slice(0, nearest).map(({ n }) => n)
    const where = matching(place, filter, now, [place, this.#embedder.model, textOf(vector), also])
    const rows = await queries.query<{ n: string; likeness: number }>(
      `WITH near AS (
         SELECT entry.n, 1 - (vector.embedding <=> $3::vector) AS likeness
         FROM openrath_memory.vector JOIN openrath_memory.entry ON entry.n = vector.entry
         WHERE vector.place = $1 AND vector.model = $2 AND ${where})
       (SELECT n, likeness FROM near ORDER BY likeness DESC LIMIT ${nearest})
       UNION SELECT n, likeness FROM near WHERE n = ANY ($4::bigint[])`,
      where.values,
    )
    const chance = chanceAbove(this.#noise.map(other => product(vector, other)))
    const words = new Map(byWords.map(({ n, score }) => [n, score]))
    const likeness = new Map(rows.map(row => [row.n, row.likeness]))
    const wordShare = mode === 'vectors' ? 0 : 1 - shareOfMeaning
    return [...new Set([...likeness.keys(), ...words.keys()])]
      .map(n => {
        const like = likeness.get(n)
        const meaning = like === undefined ? 0 : chance(like)
        return { n, score: wordShare * (words.get(n) ?? 0) + (1 - wordShare) * meaning }
      })
      .sort((a, b) => b.score - a.score || Number(BigInt(b.n) - BigInt(a.n)))
  }

  async close(): Promise<void> {
    this.#ending.abort()
    await this.#working
  }

  async #catchUp(): Promise<number> {
    const left = await this.#left()
    if (left === 0 && this.#noise.length > 0) return 0
    this.wake()
    if (left > waitedFor) return left
    await this.#working
    return this.#left()
  }

  async #left(): Promise<number> {
    const [row] = await this.#pool.query<{ count: string }>(
      `SELECT count(*) FROM openrath_memory.entry LEFT JOIN openrath_memory.vector ON vector.entry = entry.n
       WHERE entry.place = $1 AND vector.entry IS NULL`,
      [this.#place],
    )
    return Number(row?.count)
  }

  async #work(): Promise<void> {
    try {
      if (this.#noise.length === 0) this.#noise = await this.#embed(unrelated)
      while (!this.#ending.signal.aborted && (await this.#embedBatch()));
      this.#problem = undefined
    } catch (error) {
      this.#problem = this.#said(error)
    }
  }

  async #embedBatch(): Promise<boolean> {
    const rows = await this.#pool.query<{ n: string; body: string }>(
      `SELECT entry.n, entry.body FROM openrath_memory.entry LEFT JOIN openrath_memory.vector ON vector.entry = entry.n
       WHERE entry.place = $1 AND vector.entry IS NULL ORDER BY entry.n LIMIT ${batch}`,
      [this.#place],
    )
    if (rows.length === 0) return false
    const vectors = await this.#embed(rows.map(row => row.body))
    // By way of `entry`, because one may have been forgotten meanwhile.
    await this.#pool.query(
      `INSERT INTO openrath_memory.vector (entry, place, model, embedding)
       SELECT entry.n, entry.place, $3, given.embedding::vector
       FROM unnest($1::bigint[], $2::text[]) AS given (n, embedding) JOIN openrath_memory.entry USING (n)
       ON CONFLICT DO NOTHING`,
      [rows.map(row => row.n), vectors.map(textOf), this.#embedder.model],
    )
    return true
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

/** Why the server has no type for vectors; undefined when it has, and the table is there. */
async function makeTable(pool: Pool): Promise<string | undefined> {
  const [found] = await pool.query<{ available: boolean; installed: boolean; made: boolean }>(
    `SELECT EXISTS (SELECT FROM pg_available_extensions WHERE name = 'vector') AS available,
       EXISTS (SELECT FROM pg_extension WHERE extname = 'vector') AS installed,
       to_regclass('openrath_memory.vector') IS NOT NULL AS made`,
  )
  if (!found?.available && !found?.installed) {
    return `the server of ${pool.url} does not have the extension pgvector: install it to find by meaning`
  }
  if (found.installed && found.made) return undefined
  try {
    await pool.transaction(async queries => {
      await queries.query('SELECT pg_advisory_xact_lock(1380013128, 4)')
      await queries.query('CREATE EXTENSION IF NOT EXISTS vector')
      await queries.query(
        `CREATE TABLE IF NOT EXISTS openrath_memory.vector (
           entry bigint PRIMARY KEY REFERENCES openrath_memory.entry ON DELETE CASCADE,
           place integer NOT NULL, model text NOT NULL, embedding vector NOT NULL)`,
      )
    })
    return undefined
  } catch (error) {
    if (!(error instanceof RathError) || error.data.sqlstate !== '42501') throw error
    return `this user may not install pgvector on ${pool.url}: have an administrator run CREATE EXTENSION vector there`
  }
}

function textOf(vector: Float32Array): string {
  return `[${vector.join(',')}]`
}
