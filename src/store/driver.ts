/// <reference lib="esnext.disposable" preserve="true" />
import type { Digest } from '../base/digest.ts'
import { RathError } from '../base/errors.ts'
import type { ChunkKind } from '../session/chunk.ts'
import type { GcReport, RunChange, RunRow, RunStatus, SessionFilter, SessionRow } from './spec.ts'

/**
 * What a store needs from a database: rows in, rows out. The shared code above makes the decisions (linking, fencing, redaction, what is a
 * conflict) on the rows that a transaction shows it.
 */
export interface StoreDriver {
  readonly url: string
  /**
   * One transaction: runs `decide`, which reads and changes rows, and commits. Nobody else can change in between what it has read. When the
   * write fails, or `decide` throws, nothing happened. A session's head or a chunk's predecessor that is not stored fails it with
   * `chunk-missing`: `put` then writes the chunks again. `touched` names what `decide` will read, for a driver that cannot read while it decides.
   * A driver that does not have to wait may be done, or throw, at once: it then returns nothing.
   */
  commit(touched: Touched, decide: (rows: Rows) => void): Promise<void> | undefined
  /**
   * A commit never waits, and sharing one saves nothing: whoever writes need not wait either. Such a driver may not be told what is touched, and
   * need not take back what was changed before `decide` threw.
   */
  readonly neverWaits?: boolean

  sessionRow(id: string): Promise<SessionRow | undefined>
  /** Ids that start with a prefix, in order. */
  sessionIds(prefix: string, limit: number): Promise<string[]>
  tagged(tag: string): Promise<string | undefined>
  /** Newest first by (created, id); `before` continues behind a row. */
  sessionRows(
    filter: SessionFilter,
    limit: number,
    before: SessionPosition | undefined,
  ): Promise<SessionRow[]>
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

export interface SessionPosition {
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

/** What a run writes, as rows. */
export type RunRowWrite =
  | { readonly kind: 'update'; readonly change: RunChange }
  | ({ readonly kind: 'intend'; readonly entry: NewEntryRow } & Payloads)
  | ({
      readonly kind: 'conclude'
      readonly key: string
      readonly occurrence: number
      readonly outcome: string
      /** Only an entry of this kind. */
      readonly of?: 'approval'
    } & Payloads)
  /** Keeps a session. Refused by what `keep` throws, which has then changed nothing. */
  | { readonly kind: 'put'; readonly keep: (rows: Rows) => void }

/** What of an entry lies out of line: blobs that come with it, and all that it keeps. */
interface Payloads {
  readonly payloads: readonly BlobRow[]
  readonly keeps: readonly Digest[]
}

export type NewEntryRow = Pick<EntryRow, 'key' | 'occurrence' | 'kind' | 'request'>

/** Rows as a decision sees and changes them; each sees what the ones before it in the same transaction did. */
export interface Rows {
  /** Milliseconds since the epoch by the clock that all who use the store share. */
  readonly now: number
  session(id: string): SessionRow | undefined
  /** Writes a session's row, and before it those of the chunks that are not stored yet: each follows the one before it. */
  setSession(row: SessionRow, chunks: readonly ChunkRow[]): void
  deleteSession(id: string): void
  run(id: string): RunRow | undefined
  setRun(row: RunRow): void
  /**
   * The writes of whoever claimed a run with this fence: all are refused when the fence has been raised, or the run given back. With no fence,
   * those of anybody. Otherwise each is kept or refused for itself, sessions first; returns the first refusal.
   */
  commitRun(run: string, fence: number | null, writes: readonly RunRowWrite[]): unknown
  addBlob(row: BlobRow): void
  /** With null the tag goes. */
  setTag(tag: string, session: string | null): void
}

/** A decision that was not taken. Anything else that is thrown takes the whole transaction with it. */
export function isRefusal(error: unknown): boolean {
  return error instanceof RathError && error.code !== 'chunk-missing'
}
