/// <reference lib="esnext.disposable" preserve="true" />
import type { Digest } from '../base/digest.ts'
import type { ChunkKind } from '../session/chunk.ts'
import type { GcReport, RunRow, RunStatus, SessionFilter, SessionRow } from './spec.ts'

/**
 * What a store needs from a database: rows in, rows out. All decisions (linking, fencing, redaction, what is a conflict) are
 * made by the shared code above; a driver loads the rows that a decision needs, locked, and applies what was decided in one transaction.
 */
export interface StoreDriver {
  readonly url: string
  /**
   * One transaction: loads what `touched` names into a unit of work, runs `decide` on it, and writes what it left there.
   * Nobody else can change those rows in between. When `decide` throws, or the write fails, nothing happened. A session's
   * head or a chunk's predecessor that is not stored fails it with `chunk-missing`: `put` then writes the chunks again.
   * A driver that does not have to wait may be done, or throw, at once: it then returns nothing.
   */
  commit(touched: Touched, decide: (rows: Rows) => void): Promise<void> | undefined
  /** A commit never waits, and sharing one saves nothing: whoever writes need not wait either. It may not be told what is touched. */
  readonly neverWaits?: boolean

  sessionRow(id: string): Promise<SessionRow | undefined>
  /** Ids that start with a prefix, in order. */
  sessionIds(prefix: string, limit: number): Promise<string[]>
  tagged(tag: string): Promise<string | undefined>
  /** Newest first by (created, id); `before` continues behind a row. */
  sessionRows(filter: SessionFilter, limit: number, before: Place | undefined): Promise<SessionRow[]>
  readonly sessionChanges: ChangeLog<SessionRow>
  readonly runChanges: ChangeLog<RunRow>
  /** Calls `wake` soon after anything was committed, by any process; spurious calls are fine. */
  watch(wake: () => void): Disposable

  /** The chunk `head` and its predecessors back to `from` (inclusive), newest first, at most `limit`. */
  chunkRows(head: Digest, from: number, limit: number): Promise<StoredChunk[]>
  /** Those of the ids that are stored. A stored chunk's predecessors are stored too. */
  knownChunks(ids: readonly Digest[]): Promise<Set<Digest>>
  blobs(ids: readonly Digest[]): Promise<Map<Digest, Uint8Array>>
  /** Counts those that are stored, and counts them as written now. */
  keepBlobs?(ids: readonly Digest[]): Promise<number>

  runRow(id: string): Promise<RunRow | undefined>
  /** Newest first; `before` is the id of a run. */
  runRows(status: RunStatus | undefined, limit: number, before: string | undefined): Promise<RunRow[]>
  /** One transaction: claims the next run of these queues, as `RunStore.claimNext` says, without waiting for others who do. */
  takeRun(owner: string, leaseMs: number, queues: readonly string[]): Promise<RunRow | undefined>
  entryRow(run: string, key: string, occurrence: number): Promise<EntryRow | undefined>
  /** In the order in which they were first written. */
  entryRows(run: string): Promise<EntryRow[]>

  /** Chunks that are not in the word index yet, oldest first. */
  unindexed(limit: number): Promise<IndexRow[]>
  /** Puts chunks into the word index. Chunks another process has indexed meanwhile are passed over. */
  index(words: readonly IndexWords[]): Promise<void>
  /** Chunks that have all the words, best match first. */
  search(words: readonly string[], kind: ChunkKind | undefined, limit: number): Promise<FoundRow[]>

  /** Removes what nothing reaches and what was written before `before`, or only counts it. */
  sweep(before: number, dryRun: boolean): Promise<Omit<GcReport, 'dryRun'>>
  close(): Promise<void>
}

/** What has changed, in order. */
export interface ChangeLog<Row> {
  /** Rows changed behind a cursor, in order of change, and the cursor behind the last of them. Without a cursor: none, and the newest. */
  behind(cursor: string | undefined): Promise<{ rows: Row[]; cursor: string }>
  /** Whether a text may be a cursor that `behind` gave. */
  isCursor(text: string): boolean
}

/** Ids of the rows a decision needs to see. */
export interface Touched {
  readonly sessions: Iterable<string>
  readonly runs: Iterable<string>
  readonly entries: Iterable<EntryName>
}

export interface EntryName {
  readonly run: string
  readonly key: string
  readonly occurrence: number
}

export interface Place {
  readonly created: number
  readonly id: string
}

/** A chunk as it lies in the database: large payloads are out of line. */
export interface StoredChunk {
  readonly id: Digest
  readonly previous: Digest | null
  readonly index: number
  /** Encoded body; see encode.ts. */
  readonly body: string
}

/** A chunk to be written. */
export interface ChunkRow extends StoredChunk {
  readonly kind: ChunkKind
  /** Blobs the body refers to. */
  readonly blobs: readonly Digest[]
  /** The session that recorded it first. */
  readonly session: string
}

/** Writing a blob that is there counts as writing it now, so that a sweep leaves it to whoever is about to refer to it. */
export interface BlobRow {
  readonly id: Digest
  readonly bytes: Uint8Array
}

export interface EntryRow extends EntryName {
  readonly kind: string
  readonly request: string
  readonly outcome: string | null
  readonly intendedAt: number
  readonly concludedAt: number | null
  readonly blobs: readonly Digest[]
}

export interface IndexRow {
  readonly id: Digest
  readonly body: string
}

export interface IndexWords {
  readonly id: Digest
  /** Words separated by spaces, normalised as the query's are. */
  readonly words: string
}

export interface FoundRow {
  readonly id: Digest
  readonly index: number
  readonly body: string
  /** The session that recorded it first; when that one was deleted, another that reaches it, or an empty text when none does. */
  readonly session: string
}

/** Whether nothing about a run is new but how long its lease lasts: nobody who follows it has to know. */
export function isRenewal(before: RunRow, after: RunRow): boolean {
  const { status, owner, fence, output, data, cancel } = before
  return (
    status === after.status &&
    owner === after.owner &&
    fence === after.fence &&
    output === after.output &&
    data === after.data &&
    cancel === after.cancel
  )
}

export function entryKey({ run, key, occurrence }: EntryName): string {
  return `${run}\u0000${key}\u0000${occurrence}`
}

/** Where a unit has an entry. */
interface EntrySlot {
  row: EntryRow
  isChanged: boolean
}

/** Rows as a decision sees and changes them; each sees what the ones before it in the same transaction did. */
export interface Rows {
  /** Milliseconds since the epoch by the clock that all who use the store share. */
  readonly now: number
  session(id: string): SessionRow | undefined
  setSession(row: SessionRow): void
  deleteSession(id: string): void
  run(id: string): RunRow | undefined
  setRun(row: RunRow): void
  entry(name: EntryName): EntryRow | undefined
  setEntry(row: EntryRow): void
  /** Those that are written before are passed over. */
  addChunk(row: ChunkRow): void
  addBlob(row: BlobRow): void
  /** With null the tag goes. */
  setTag(tag: string, session: string | null): void
}

/** A unit of work: what a transaction loaded, and what it is to write when all decisions are made. */
export class Unit implements Rows {
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

  setSession(row: SessionRow): void {
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

  addChunk(row: ChunkRow): void {
    if (!this.chunks.has(row.id)) this.chunks.set(row.id, row)
  }

  addBlob(row: BlobRow): void {
    this.blobs.set(row.id, row)
  }

  setTag(tag: string, session: string | null): void {
    this.tags.set(tag, session)
  }

  run(id: string): RunRow | undefined {
    return this.#runs.get(id)
  }

  setRun(row: RunRow): void {
    this.#runs.set(row.id, row)
    this.changedRuns.add(row.id)
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
