import type { Digest } from '../base/digest.ts'
import { RathError } from '../base/errors.ts'
import type { Json } from '../base/json.ts'
import {
  backwards,
  chunkAt,
  chunksFrom,
  isClaimed,
  isKeptBy,
  lengthOf,
  link,
  markKept,
  previousOf,
  writeChunk,
} from '../session/chain.ts'
import type { Chunk, ChunkBody } from '../session/chunk.ts'
import { identifyText } from '../session/identity.ts'
import type { BlobRow, ChunkRow, StoreDriver } from './driver.ts'
import { encodeWritten } from './encode.ts'
import type { Redactor } from './redact.ts'

export interface EncodedChunk {
  readonly row: ChunkRow
  readonly blobs: readonly BlobRow[]
}

/** Turns the part of a chain that a store does not have yet into rows. Cost follows that part, not the history. */
export class ChainWriter {
  readonly #driver: StoreDriver
  readonly #redactor: Redactor
  /** Marks chunks known to be stored, and with them everything before. */
  #mark = {}
  /** For a chunk that held a secret, or follows one that did, the one that is kept in its place. */
  readonly #instead = new WeakMap<Chunk, Chunk>()

  /** Chunks that hold no secret, as they were written to find that out, until they are written to stay. */
  readonly #texts = new WeakMap<Chunk, string>()

  constructor(driver: StoreDriver, redactor: Redactor) {
    this.#driver = driver
    this.#redactor = redactor
  }

  /** The chain without secrets; the same chunks up to the first that held one. */
  redacted(tip: Chunk | undefined): Chunk | undefined {
    const fresh: Chunk[] = []
    let known = tip
    while (known && !isKeptBy(known, this.#mark) && !this.#instead.has(known)) {
      fresh.push(known)
      known = previousOf(known)
    }
    let last = known && (this.#instead.get(known) ?? known)
    for (const chunk of fresh.reverse()) {
      const known = this.#texts.get(chunk)
      const text = known ?? writeChunk(chunk)
      const clean = known === undefined ? this.#redactor.chunk(chunk, text) : chunk
      if (clean === chunk && previousOf(chunk) === last) {
        last = chunk
        this.#texts.set(chunk, text)
        continue
      }
      // What is written under another id must not become true by that.
      if (!isTrue(chunk, text)) throw forged(chunk)
      last = link(last, this.#renamed(clean, chunk))
      this.#instead.set(chunk, last)
    }
    return last
  }

  /** A summary names the chunks it replaced, and those may have been kept under other ids. */
  #renamed(body: ChunkBody, given: Chunk): ChunkBody {
    if (body.kind !== 'compress') return body
    const wanted = new Set(body.replaced)
    const ids = new Map<Digest, Digest>()
    for (const chunk of backwards(previousOf(given))) {
      if (wanted.size === 0) break
      if (wanted.delete(chunk.id)) ids.set(chunk.id, (this.#instead.get(chunk) ?? chunk).id)
    }
    return { ...body, replaced: Object.freeze(body.replaced.map(id => ids.get(id) ?? id)) }
  }

  /** Rows for the chunks that the store lacks, oldest first, recorded as `session`'s. At once, unless the store has to be asked. */
  missing(tip: Chunk | undefined, session: string): EncodedChunk[] | Promise<EncodedChunk[]> {
    const start = this.#firstMissing(tip)
    return typeof start === 'number'
      ? this.#rows(tip, start, session)
      : start.then(index => this.#rows(tip, index, session))
  }

  #rows(tip: Chunk | undefined, start: number, session: string): EncodedChunk[] {
    return chunksFrom(tip, start).map(chunk => {
      const previous = previousOf(chunk)?.id ?? null
      const text = this.#texts.get(chunk) ?? writeChunk(chunk)
      this.#texts.delete(chunk)
      // An id that was read from a file is a claim. Kept unchecked, it would stand in the way of the true chunk for ever.
      if (!isTrue(chunk, text)) throw forged(chunk)
      return encodeChunk(chunk, { id: chunk.id, index: chunk.index, previous, session }, text)
    })
  }

  /** A chain has been committed. */
  stored(tip: Chunk | undefined): void {
    markKept(tip, this.#mark)
  }

  /** Trust no memory of what is stored. */
  forget(): void {
    this.#mark = {}
  }

  #firstMissing(tip: Chunk | undefined): number | Promise<number> {
    let known = tip
    while (known && !isKeptBy(known, this.#mark)) known = previousOf(known)
    return known || tip === undefined ? lengthOf(known) : this.#search(tip)
  }

  async #search(tip: Chunk): Promise<number> {
    // Nothing of it is known in this process. What is stored is a prefix, so its end is found by halving.
    let low = 0
    let high = lengthOf(tip)
    if (!(await this.#has(chunkAt(tip, 0)))) return 0
    while (low + 1 < high) {
      const middle = (low + high) >>> 1
      if (await this.#has(chunkAt(tip, middle))) low = middle
      else high = middle
    }
    return low + 1
  }

  async #has(chunk: Chunk): Promise<boolean> {
    return (await this.#driver.knownChunks([chunk.id])).has(chunk.id)
  }
}

/** A chunk's row; `place` says where it hangs, `plain` is its JSON text. */
export function encodeChunk(
  body: ChunkBody,
  place: Pick<ChunkRow, 'id' | 'index' | 'previous' | 'session'>,
  plain: string,
): EncodedChunk {
  const { text, blobs, keeps } = encodeWritten(body as unknown as Json, plain)
  const { id, index, previous, session } = place
  return { row: { id, index, previous, session, kind: body.kind, body: text, blobs: keeps }, blobs }
}

function isTrue(chunk: Chunk, text: string): boolean {
  return !isClaimed(chunk) || identifyText(text, previousOf(chunk)?.id ?? null) === chunk.id
}

function forged(chunk: Chunk): RathError {
  return new RathError(
    'invalid-chunk',
    `Chunk ${chunk.index} (${chunk.kind}) does not match its id ${chunk.id}: the session was altered or damaged before it came here. ` +
      'Find out with verify(), and keep the part before that chunk with rewind().',
    { data: { chunk: chunk.id, index: chunk.index } },
  )
}
