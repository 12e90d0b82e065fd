import type { Digest } from '../../../base/digest.ts'
import { RathError } from '../../../base/errors.ts'
import type { BlobRow, ChunkRow, EntryName, EntryRow, Rows } from '../../driver.ts'
import type { RunRow, SessionRow } from '../../spec.ts'

type Written<T> = T & { readonly written: number }

/** What a memory store holds. Decisions work on it directly: nobody else can look in between. */
export class Tables implements Rows {
  readonly sessions = new Map<string, SessionRow>()
  /** Ids in the order of their last change; re-inserting moves one to the end. */
  readonly changed = new Map<string, number>()
  readonly chunks = new Map<Digest, Written<ChunkRow>>()
  readonly blobs = new Map<Digest, Written<BlobRow>>()
  readonly tags = new Map<string, string>()
  readonly runs = new Map<string, RunRow>()
  readonly journals = new Map<string, MemoryJournal>()
  sequence = 0

  session(id: string): SessionRow | undefined {
    const row = this.sessions.get(id)
    return row && this.withTags(row)
  }

  setSession(row: SessionRow): void {
    this.#need(row.head)
    this.sessions.set(row.id, row)
    this.changed.delete(row.id)
    this.changed.set(row.id, ++this.sequence)
  }

  deleteSession(id: string): void {
    this.sessions.delete(id)
    this.changed.delete(id)
    for (const [tag, session] of this.tags) if (session === id) this.tags.delete(tag)
  }

  run(id: string): RunRow | undefined {
    return this.runs.get(id)
  }

  setRun(row: RunRow): void {
    this.runs.set(row.id, row)
  }

  entry(name: EntryName): EntryRow | undefined {
    return this.journals.get(name.run)?.get(name)
  }

  setEntry(row: EntryRow): void {
    let journal = this.journals.get(row.run)
    if (journal === undefined) {
      journal = new MemoryJournal()
      this.journals.set(row.run, journal)
    }
    journal.set(row)
  }

  addChunk(row: ChunkRow): void {
    if (this.chunks.has(row.id)) return
    this.#need(row.previous)
    this.chunks.set(row.id, { ...row, written: Date.now() })
  }

  addBlob(row: BlobRow): void {
    this.blobs.set(row.id, { ...row, written: Date.now() })
  }

  setTag(tag: string, session: string | null): void {
    if (session === null) this.tags.delete(tag)
    else this.tags.set(tag, session)
  }

  withTags(row: SessionRow): SessionRow {
    if (this.tags.size === 0) return row.tags.length === 0 ? row : { ...row, tags: [] }
    const own = [...this.tags].filter(([, id]) => id === row.id)
    return { ...row, tags: own.map(([tag]) => tag).sort() }
  }

  #need(id: Digest | null): void {
    if (id === null || this.chunks.has(id)) return
    throw new RathError('chunk-missing', `Chunk ${id} is not stored, although something refers to it.`)
  }
}

/** The entries of one run, in the order in which they were first written. */
class MemoryJournal {
  readonly rows: EntryRow[] = []
  /** By key, the places of its occurrences. */
  readonly #places = new Map<string, number[]>()

  get({ key, occurrence }: Omit<EntryName, 'run'>): EntryRow | undefined {
    for (const place of this.#places.get(key) ?? none) {
      const row = this.rows[place] as EntryRow
      if (row.occurrence === occurrence) return row
    }
    return undefined
  }

  set(row: EntryRow): void {
    const places = this.#places.get(row.key)
    const known = places?.find(place => this.rows[place]?.occurrence === row.occurrence)
    if (known !== undefined) this.rows[known] = row
    else {
      const place = this.rows.push(row) - 1
      if (places) places.push(place)
      else this.#places.set(row.key, [place])
    }
  }
}

const none: readonly number[] = []
