import { RathError } from '../../../base/errors.ts'
import type { Embedder } from '../../embedding.ts'
import { sketchOf, toBytes, toFloats } from '../../sketch.ts'
import type { MemoryFilter } from '../../spec.ts'
import { unrelated } from '../../unrelated.ts'
import { batch, nearest, VectorMaker } from '../../vector-maker.ts'
import type { Database } from './database.ts'
import { accepting } from './filter.ts'
import type { Finding } from './find.ts'
import { VectorScan } from './vector-scan.ts'
import { numberIn, setNumber } from './word-index.ts'

/** A vector for each entry in the same file, with a sketch of it for finding. */
export class Vectors extends VectorMaker {
  readonly #db: Database
  readonly #scan: VectorScan

  private constructor(db: Database, embedder: Embedder) {
    super(embedder)
    this.#db = db
    this.#scan = new VectorScan(db)
  }

  /** Vectors of another model are of no use: they go, and new ones are made from the first entry on. */
  static async open(db: Database, embedder: Embedder): Promise<Vectors> {
    const isOurs = () => modelIn(db) === embedder.model && hasDimensions(db, embedder.dimensions)
    if (!(await db.read(isOurs))) {
      await db.write(() => {
        if (isOurs()) return
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

  /** By words and meaning, best first; by meaning alone without words. None when another model has taken over. Inside a read. */
  join(
    finding: Finding,
    vector: Float32Array,
    filter: MemoryFilter,
    byWords: readonly { n: number; score: number }[] | undefined,
  ): { n: number; score: number }[] | undefined {
    if (modelIn(this.#db) !== this.model) return undefined
    const { accepts } = accepting(filter, finding)
    const also = byWords?.slice(0, nearest).map(({ n }) => n) ?? []
    const likeness = this.#scan.nearest(vector, accepts, nearest, also)
    return this.joined(vector, likeness, byWords).sort((a, b) => b.score - a.score || b.n - a.n)
  }

  protected left(): Promise<number> {
    return this.#db.read(() => {
      this.#checkModel()
      const rows = this.#db.get(
        'SELECT count(*) AS count FROM entry WHERE n > ? AND n NOT IN (SELECT n FROM vector)',
        numberIn(this.#db, 'embedded'),
      )
      return rows?.count as number
    })
  }

  protected async embedBatch(): Promise<boolean> {
    const rows = await this.#db.read(() =>
      this.#db.all(
        'SELECT n, text FROM entry WHERE n > ? AND n NOT IN (SELECT n FROM vector) ORDER BY n LIMIT ?',
        numberIn(this.#db, 'embedded'),
        batch,
      ),
    )
    if (rows.length === 0) return false
    const vectors = await this.embedEach(rows.map(row => row.text as string))
    await this.#db.write(() => {
      this.#checkModel()
      for (const [i, { n }] of rows.entries()) {
        const vector = vectors[i]
        if (!vector || !this.#db.get('SELECT 1 FROM entry WHERE n = ?', n as number)) continue
        this.#keep(n as number, vector)
      }
      const done = Math.max(numberIn(this.#db, 'embedded'), (rows.at(-1)?.n as number) ?? 0)
      setNumber(this.#db, 'embedded', done)
    })
    return true
  }

  /** Another process may have opened the file with another model since. Its vectors and ours cannot be compared. */
  #checkModel(): void {
    const model = modelIn(this.#db)
    if (model === this.model) return
    throw new RathError('store-busy', `the memory is used with the model ${model} elsewhere`, {
      data: { path: this.#db.path },
    })
  }

  #keep(n: number, vector: Float32Array): void {
    if (n > 0)
      this.#db.run('INSERT OR IGNORE INTO vector (n, sketch) VALUES (?, ?)', n, toBytes(sketchOf(vector)))
    this.#db.run('INSERT OR IGNORE INTO vector_exact VALUES (?, ?)', n, toBytes(vector))
  }

  /** Under numbers below zero. */
  protected async loadNoise(): Promise<readonly Float32Array[]> {
    const stored = await this.#db.read(() => this.#db.all('SELECT bytes FROM vector_exact WHERE n < 0'))
    if (stored.length === unrelated.length) return stored.map(row => toFloats(row.bytes as Uint8Array))
    const vectors = await this.embed(unrelated)
    await this.#db.write(() => {
      this.#checkModel()
      for (const [i, vector] of vectors.entries()) this.#keep(-1 - i, vector)
    })
    return vectors
  }
}

function modelIn(db: Database): string | undefined {
  return db.get("SELECT value FROM meta WHERE name = 'embedding'")?.value as string | undefined
}

/** Whether the vectors that are kept, if any, have so many numbers. */
function hasDimensions(db: Database, dimensions: number | undefined): boolean {
  const row = db.get('SELECT length(bytes) / 4 AS count FROM vector_exact LIMIT 1')
  return dimensions === undefined || row === undefined || row.count === dimensions
}
