import { distance, normalised, product, sketchOf, toFloats } from '../../sketch.ts'
import type { Database } from './database.ts'
import type { Accepts } from './filter.ts'

/** Vectors of up to so many bytes are held in memory and compared exactly; of more, only their sketches. */
const mostExactBytes = 64 * 2 ** 20
/** As many of the nearest by sketch are compared exactly: on real embeddings 200 lost none of the first ten. */
const compared = 400

/** One process's view of the vectors. */
export class VectorScan {
  readonly #db: Database
  #numbers: number[] = []
  #sketches = new Uint32Array(0)
  #exact: Float32Array | undefined = new Float32Array(0)
  #seq = 0
  #dimensions = 0

  constructor(db: Database) {
    this.#db = db
  }

  /** Forgets everything: the vectors are of another model now. */
  reset(): void {
    this.#numbers = []
    this.#sketches = new Uint32Array(0)
    this.#exact = new Float32Array(0)
    this.#seq = 0
  }

  /** How like the question the nearest entries are, at most so many; those of `also` too. Inside a read. */
  nearest(
    vector: Float32Array,
    accepts: Accepts,
    limit: number,
    also: Iterable<number>,
  ): Map<number, number> {
    this.#sync(vector.length)
    const likeness = new Map<number, number>()
    const near = this.#exact ? this.#byValue(vector, this.#exact, accepts) : this.#bySketch(vector, accepts)
    for (const [n, value] of near.sort((a, b) => b[1] - a[1]).slice(0, limit)) likeness.set(n, value)
    for (const n of also) {
      const value = likeness.has(n) ? undefined : this.#likeness(vector, n)
      if (value !== undefined) likeness.set(n, value)
    }
    return likeness
  }

  #byValue(vector: Float32Array, exact: Float32Array, accepts: Accepts): [number, number][] {
    const found: [number, number][] = []
    for (const [i, n] of this.#numbers.entries()) {
      if (accepts(n)) found.push([n, product(vector, exact, i * vector.length)])
    }
    return found
  }

  #bySketch(vector: Float32Array, accepts: Accepts): [number, number][] {
    const sketch = sketchOf(vector)
    const words = sketch.length
    const distances = new Uint16Array(this.#numbers.length)
    const histogram = new Uint32Array(vector.length + 2)
    for (let i = 0; i < distances.length; i++) {
      const bits = distance(sketch, this.#sketches, i * words)
      distances[i] = bits
      if (accepts(this.#numbers[i] as number)) histogram[bits] = (histogram[bits] as number) + 1
    }
    let limit = 0
    for (let sum = 0; limit < histogram.length; limit++) {
      sum += histogram[limit] as number
      if (sum >= compared) break
    }
    const found: [number, number][] = []
    for (let i = 0; i < distances.length; i++) {
      const n = this.#numbers[i] as number
      if ((distances[i] as number) > limit || !accepts(n)) continue
      const value = this.#likeness(vector, n)
      if (value !== undefined) found.push([n, value])
    }
    return found
  }

  #likeness(vector: Float32Array, n: number): number | undefined {
    const row = this.#db.get('SELECT bytes FROM vector_exact WHERE n = ?', n)
    return row && product(vector, toFloats(row.bytes as Uint8Array))
  }

  #sync(dimensions: number): void {
    if (dimensions !== this.#dimensions) this.reset()
    this.#dimensions = dimensions
    const words = Math.ceil(dimensions / 32)
    for (const row of this.#db.iterate(
      'SELECT seq, n, sketch FROM vector WHERE seq > ? ORDER BY seq',
      this.#seq,
    )) {
      const place = this.#numbers.length
      this.#seq = row.seq as number
      this.#numbers.push(row.n as number)
      if ((place + 1) * words > this.#sketches.length) this.#sketches = doubled(this.#sketches, words * 1_024)
      const bytes = row.sketch as Uint8Array
      this.#sketches.set(new Uint32Array(bytes.slice().buffer), place * words)
      this.#keepExact(row.n as number, place, dimensions)
    }
  }

  #keepExact(n: number, place: number, dimensions: number): void {
    if (this.#exact === undefined) return
    if ((place + 1) * dimensions * 4 > mostExactBytes) {
      this.#exact = undefined
      return
    }
    if ((place + 1) * dimensions > this.#exact.length) this.#exact = doubled(this.#exact, dimensions * 256)
    const row = this.#db.get('SELECT bytes FROM vector_exact WHERE n = ?', n)
    if (row) this.#exact.set(normalised(toFloats(row.bytes as Uint8Array)), place * dimensions)
  }
}

function doubled<A extends Uint32Array | Float32Array>(array: A, least: number): A {
  const larger = new (array.constructor as new (length: number) => A)(Math.max(array.length * 2, least))
  larger.set(array as never)
  return larger
}
