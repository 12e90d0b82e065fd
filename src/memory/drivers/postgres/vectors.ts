import { RathError } from '../../../base/errors.ts'
import type { Embedder } from '../../embedding.ts'
import type { MemoryFilter } from '../../spec.ts'
import { unrelated } from '../../unrelated.ts'
import { batch, nearest, VectorMaker } from '../../vector-maker.ts'
import { matching } from './filter.ts'
import type { Finding, Scored } from './find.ts'
import type { Pool } from './pool.ts'

/** A vector for each entry in pgvector's own type. The server compares all of a store's, exactly. */
export class Vectors extends VectorMaker {
  readonly #pool: Pool
  readonly #place: number
  /** Entries that the model refuses. */
  readonly #refused = new Set<string>()

  private constructor(pool: Pool, place: number, embedder: Embedder) {
    super(embedder)
    this.#pool = pool
    this.#place = place
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

  /** By words and meaning, best first. */
  async join(
    { queries, place, now }: Finding,
    vector: Float32Array,
    filter: MemoryFilter,
    byWords: readonly Scored[],
    mode: 'auto' | 'vectors',
  ): Promise<Scored[]> {
    const also = byWords.slice(0, nearest).map(({ n }) => n)
    const where = matching(place, filter, now, [place, this.model, textOf(vector), also])
    const rows = await queries.query<{ n: string; likeness: number }>(
      `WITH near AS (
         SELECT entry.n, 1 - (vector.embedding <=> $3::vector) AS likeness
         FROM openrath_memory.vector JOIN openrath_memory.entry ON entry.n = vector.entry
         WHERE vector.place = $1 AND vector.model = $2 AND ${where})
       (SELECT n, likeness FROM near ORDER BY likeness DESC LIMIT ${nearest})
       UNION SELECT n, likeness FROM near WHERE n = ANY ($4::bigint[])`,
      where.values,
    )
    const likeness = new Map(rows.map(row => [row.n, row.likeness]))
    const joined = this.joined(vector, likeness, mode === 'vectors' ? undefined : byWords)
    return joined.sort((a, b) => b.score - a.score || Number(BigInt(b.n) - BigInt(a.n)))
  }

  protected async left(): Promise<number> {
    const [row] = await this.#pool.query<{ count: string }>(
      `SELECT count(*) FROM openrath_memory.entry LEFT JOIN openrath_memory.vector ON vector.entry = entry.n
       WHERE entry.place = $1 AND vector.entry IS NULL AND entry.n <> ALL ($2::bigint[])`,
      [this.#place, [...this.#refused]],
    )
    return Number(row?.count)
  }

  protected loadNoise(): Promise<readonly Float32Array[]> {
    return this.embed(unrelated)
  }

  protected async embedBatch(): Promise<boolean> {
    const rows = await this.#pool.query<{ n: string; body: string }>(
      `SELECT entry.n, entry.body FROM openrath_memory.entry LEFT JOIN openrath_memory.vector ON vector.entry = entry.n
       WHERE entry.place = $1 AND vector.entry IS NULL AND entry.n <> ALL ($2::bigint[]) ORDER BY entry.n LIMIT ${batch}`,
      [this.#place, [...this.#refused]],
    )
    if (rows.length === 0) return false
    const vectors = await this.embedEach(rows.map(row => row.body))
    const made = rows.flatMap(({ n }, i) => (vectors[i] ? [{ n, embedding: textOf(vectors[i]) }] : []))
    for (const [i, { n }] of rows.entries()) if (!vectors[i]) this.#refused.add(n)
    // By way of `entry`, because one may have been forgotten meanwhile.
    await this.#pool.query(
      `INSERT INTO openrath_memory.vector (entry, place, model, embedding)
       SELECT entry.n, entry.place, $3, given.embedding::vector
       FROM unnest($1::bigint[], $2::text[]) AS given (n, embedding) JOIN openrath_memory.entry USING (n)
       ON CONFLICT DO NOTHING`,
      [made.map(({ n }) => n), made.map(({ embedding }) => embedding), this.model],
    )
    return true
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
