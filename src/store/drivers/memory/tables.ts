import type { Digest } from '../../../base/digest.ts'
import { RathError } from '../../../base/errors.ts'
import { namedBy } from '../../../session/lineage.ts'
import type { BlobRow, ChunkRow, EntryName, EntryRow, RunRowWrite } from '../../driver.ts'
import { commitRun, isRenewal, type RunTables } from '../../run-decisions.ts'
import type { RunRow, SessionRow } from '../../spec.ts'
import { SortedIds } from './sorted-ids.ts'

type Written<T> = T & { readonly written: number }

/** What a memory store holds. Decisions work on it directly: nobody else can look in between. */
export class Tables implements RunTables {
  readonly sessions = new Map<string, SessionRow>()
  readonly ids = new SortedIds()
  /** By the id of a session, kept or not, those that came from it. */
  readonly #children = new Map<string, Set<string>>()
  /** Which change was the last of each. */
  readonly changed = new Map<string, number>()
  readonly changedRuns = new Map<string, number>()
  readonly chunks = new Map<Digest, Written<ChunkRow>>()
  readonly blobs = new Map<Digest, Written<BlobRow>>()
  readonly tags = new Map<string, string>()
  readonly #tagsOf = new Map<string, Set<string>>()
  readonly runs = new Map<string, RunRow>()
  readonly journals = new Map<string, MemoryJournal>()
  sequence = 0
  /** The chunk that was added last: most others, and most heads, refer to it. */
  #newest: Digest | null = null

  get now(): number {
    return Date.now()
  }

  session(id: string): SessionRow | undefined {
    const row = this.sessions.get(id)
    return row && this.withTags(row)
  }

  setSession(row: SessionRow, chunks: readonly ChunkRow[]): void {
    for (const chunk of chunks) this.#addChunk(chunk)
    this.#need(row.head)
    if (!this.sessions.has(row.id)) this.#insert(row)
    this.sessions.set(row.id, row)
    this.changed.set(row.id, ++this.sequence)
  }

  #insert({ id, lineage }: SessionRow): void {
    this.ids.add(id)
    for (const parent of namedBy(lineage)) {
      const children = this.#children.get(parent)
      if (children) children.add(id)
      else this.#children.set(parent, new Set([id]))
    }
  }

  childrenOf(parent: string): SessionRow[] {
    return [...(this.#children.get(parent) ?? [])].map(id => this.sessions.get(id) as SessionRow)
  }

  deleteSession(id: string): void {
    const row = this.sessions.get(id)
    if (row === undefined) return
    this.sessions.delete(id)
    this.ids.delete(id)
    for (const parent of namedBy(row.lineage)) {
      const children = this.#children.get(parent)
      if (children?.delete(id) && children.size === 0) this.#children.delete(parent)
    }
    this.changed.delete(id)
    for (const tag of this.#tagsOf.get(id) ?? []) this.tags.delete(tag)
    this.#tagsOf.delete(id)
  }

  run(id: string): RunRow | undefined {
    return this.runs.get(id)
  }

  setRun(row: RunRow): void {
    const before = this.runs.get(row.id)
    this.runs.set(row.id, row)
    if (before === undefined || !isRenewal(before, row)) this.changedRuns.set(row.id, ++this.sequence)
  }

  commitRun(run: string, fence: number | null, writes: readonly RunRowWrite[]): unknown {
    return commitRun(this, run, fence, writes)
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

  #addChunk(row: ChunkRow): void {
    if (this.chunks.has(row.id)) return
    this.#need(row.previous)
    const { id, index, previous, session, kind, body, blobs } = row
    this.chunks.set(id, { id, index, previous, session, kind, body, blobs, written: Date.now() })
    this.#newest = id
  }

  deleteChunk(id: Digest): void {
    this.chunks.delete(id)
    this.#newest = null
  }

  addBlob(row: BlobRow): void {
    this.blobs.set(row.id, { ...row, written: Date.now() })
  }

  setTag(tag: string, session: string | null): void {
    const before = this.tags.get(tag)
    if (before !== undefined) this.#tagsOf.get(before)?.delete(tag)
    if (session === null) {
      this.tags.delete(tag)
      return
    }
    this.tags.set(tag, session)
    const own = this.#tagsOf.get(session)
    if (own) own.add(tag)
    else this.#tagsOf.set(session, new Set([tag]))
  }

  withTags(row: SessionRow): SessionRow {
    const own = this.#tagsOf.get(row.id)
    if (own === undefined || own.size === 0) return row.tags.length === 0 ? row : { ...row, tags: [] }
    return { ...row, tags: [...own].sort() }
  }

  #need(id: Digest | null): void {
    if (id === this.#newest || id === null || this.chunks.has(id)) return
    throw new RathError('chunk-missing', `Chunk ${id} is not stored, although something refers to it.`)
  }
}

/** The entries of one run, in the order in which they were first written. */
class MemoryJournal {
  readonly #rows = new Map<string, EntryRow>()

  get rows(): Iterable<EntryRow> {
    return this.#rows.values()
  }

  get(name: Omit<EntryName, 'run'>): EntryRow | undefined {
    return this.#rows.get(nameOf(name))
  }

  /** A row that takes the place of another keeps its place among them. */
  set(row: EntryRow): void {
    this.#rows.set(nameOf(row), row)
  }
}

/** No key has a NUL. */
function nameOf({ key, occurrence }: Omit<EntryName, 'run'>): string {
  return occurrence === 0 ? key : `${key}\u0000${occurrence}`
}
