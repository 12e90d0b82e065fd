import type { Digest } from '../../../base/digest.ts'
import type { BlobRow, ChunkRow, EntryName, EntryRow, RunRowWrite } from '../../driver.ts'
import { commitRun, type RunTables } from '../../run-decisions.ts'
import type { RunRow, SessionRow } from '../../spec.ts'

/** Where a unit has an entry. */
interface EntrySlot {
  row: EntryRow
  isChanged: boolean
}

/** A unit of work: what a transaction loaded, and what it is to write when all decisions are made. */
export class Unit implements RunTables {
  readonly #sessions = new Map<string, SessionRow>()
  readonly #runs = new Map<string, RunRow>()
  /** By key alone: most are asked for once, and joining their names would cost more than comparing the rest. */
  readonly #entries = new Map<string, EntrySlot[]>()
  readonly changedSessions = new Set<string>()
  readonly deletedSessions = new Set<string>()
  readonly changedRuns = new Set<string>()
  readonly changedEntries: EntrySlot[] = []
  readonly chunks = new Map<Digest, ChunkRow>()
  readonly blobs = new Map<Digest, BlobRow>()
  /** Tags to set, or with null to remove. */
  readonly tags = new Map<string, string | null>()

  readonly now: number

  constructor(loaded: {
    sessions: Iterable<SessionRow>
    runs: Iterable<RunRow>
    entries: Iterable<EntryRow>
    /** This machine's clock by default. */
    now?: number
  }) {
    this.now = loaded.now ?? Date.now()
    for (const row of loaded.sessions) this.#sessions.set(row.id, row)
    for (const row of loaded.runs) this.#runs.set(row.id, row)
    for (const row of loaded.entries) this.#addEntry(row)
  }

  session(id: string): SessionRow | undefined {
    return this.#sessions.get(id)
  }

  setSession(row: SessionRow, chunks: readonly ChunkRow[]): void {
    for (const chunk of chunks) if (!this.chunks.has(chunk.id)) this.chunks.set(chunk.id, chunk)
    this.#sessions.set(row.id, row)
    this.changedSessions.add(row.id)
    this.deletedSessions.delete(row.id)
  }

  deleteSession(id: string): void {
    this.#sessions.delete(id)
    for (const [tag, session] of this.tags) if (session === id) this.tags.set(tag, null)
    this.changedSessions.delete(id)
    this.deletedSessions.add(id)
  }

  addBlob(row: BlobRow): void {
    this.blobs.set(row.id, row)
  }

  setTag(tag: string, session: string | null): void {
    this.tags.set(tag, session)
    for (const [id, row] of this.#sessions) {
      if (row.tags.includes(tag) !== (id === session))
        this.#sessions.set(id, {
          ...row,
          tags: id === session ? [...row.tags, tag].sort() : row.tags.filter(one => one !== tag),
        })
    }
  }

  run(id: string): RunRow | undefined {
    return this.#runs.get(id)
  }

  setRun(row: RunRow): void {
    this.#runs.set(row.id, row)
    this.changedRuns.add(row.id)
  }

  commitRun(run: string, fence: number | null, writes: readonly RunRowWrite[]): unknown {
    return commitRun(this, run, fence, writes)
  }

  entry(name: EntryName): EntryRow | undefined {
    return this.#slot(name)?.row
  }

  setEntry(row: EntryRow): void {
    const slot = this.#slot(row) ?? this.#addEntry(row)
    slot.row = row
    if (slot.isChanged) return
    slot.isChanged = true
    this.changedEntries.push(slot)
  }

  #slot({ run, key, occurrence }: EntryName): EntrySlot | undefined {
    const slots = this.#entries.get(key)
    return slots?.find(({ row }) => row.occurrence === occurrence && row.run === run)
  }

  #addEntry(row: EntryRow): EntrySlot {
    const slot = { row, isChanged: false }
    const slots = this.#entries.get(row.key)
    if (slots) slots.push(slot)
    else this.#entries.set(row.key, [slot])
    return slot
  }

  /** The rows to write, for a driver. */
  get written(): { sessions: SessionRow[]; runs: RunRow[]; entries: EntryRow[] } {
    return {
      sessions: rowsOf(this.changedSessions, this.#sessions),
      runs: rowsOf(this.changedRuns, this.#runs),
      entries: this.changedEntries.map(({ row }) => row),
    }
  }
}

function rowsOf<T>(keys: ReadonlySet<string>, from: ReadonlyMap<string, T>): T[] {
  const rows: T[] = []
  for (const key of keys) rows.push(from.get(key) as T)
  return rows
}
