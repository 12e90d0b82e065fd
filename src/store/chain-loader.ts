import type { Digest } from '../base/digest.ts'
import { RathError } from '../base/errors.ts'
import { link, proveFrom } from '../session/chain.ts'
import type { Chunk } from '../session/chunk.ts'
import { parseRecordedChunk } from '../session/parse.ts'
import type { StoreDriver, StoredChunk } from './driver.ts'
import { decodeAll, isWhole } from './encode.ts'

const firstPage = 64
const largestPage = 8192
const checkpointEvery = 64
const mostCheckpoints = 20_000

/**
 * Reads chains back into memory, newest page first, until it meets a chunk it has read before: sessions that share history
 * share it in memory, too, and only what is new is fetched.
 */
export class ChainLoader {
  readonly #driver: StoreDriver
  /** Heads and every 64th chunk of what was loaded, held weakly. */
  readonly #checkpoints = new Map<Digest, WeakRef<Chunk>>()

  constructor(driver: StoreDriver) {
    this.#driver = driver
  }

  async load(head: Digest | null): Promise<Chunk | undefined> {
    const rows: StoredChunk[] = []
    let base: Chunk | undefined
    let next = head
    for (let page = firstPage; next !== null; page = Math.min(page * 4, largestPage)) {
      const fetched = await this.#driver.chunkRows(next, 0, page)
      const known = fetched.findIndex(row => this.#known(row.id) !== undefined)
      rows.push(...(known < 0 ? fetched : fetched.slice(0, known)))
      base = known < 0 ? undefined : this.#known((fetched[known] as StoredChunk).id)
      const last = fetched.at(-1)
      if (last === undefined) throw incomplete(next)
      next = base ? null : last.previous
    }
    return this.#link(base, rows.reverse())
  }

  async #link(base: Chunk | undefined, rows: readonly StoredChunk[]): Promise<Chunk | undefined> {
    const texts = rows.map(row => row.body)
    const bodies = await decodeAll(texts, ids => this.#driver.blobs(ids))
    let tip = base
    for (const [i, row] of rows.entries()) {
      tip = link(tip, parseRow(bodies[i], row.id), row.id)
      // Here its text is at hand; what lies in blobs is looked at when somebody acts on it.
      if (isWhole(row.body)) proveFrom(row.body, tip)
      if (tip.index % checkpointEvery === 0 || i === rows.length - 1) this.#remember(tip)
    }
    return tip
  }

  #known(id: Digest): Chunk | undefined {
    return this.#checkpoints.get(id)?.deref()
  }

  #remember(chunk: Chunk): void {
    if (this.#checkpoints.size >= mostCheckpoints) {
      const [oldest] = this.#checkpoints.keys()
      this.#checkpoints.delete(oldest as Digest)
    }
    this.#checkpoints.set(chunk.id, new WeakRef(chunk))
  }
}

function parseRow(body: unknown, id: Digest) {
  try {
    return parseRecordedChunk(body, `chunk ${id.slice(0, 12)}`)
  } catch (cause) {
    throw new RathError(
      'store-corrupt',
      `Chunk ${id} in the store is not what was written. Restore the store from a backup, or export what verifies.`,
      { cause, data: { chunk: id } },
    )
  }
}

function incomplete(id: Digest): RathError {
  return new RathError(
    'store-corrupt',
    `Chunk ${id} is missing from the store although a session reaches it.`,
    {
      data: { chunk: id },
    },
  )
}
