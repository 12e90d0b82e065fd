/// <reference lib="esnext.disposable" preserve="true" />
import type { Digest } from '../base/digest.ts'
import type { Json, JsonObject } from '../base/json.ts'
import type { Chunk, ChunkInput, ChunkKind } from '../session/chunk.ts'
import type { Lineage } from '../session/lineage.ts'
import type { Session } from '../session/session.ts'

/**
 * Where sessions, runs and their payloads outlive the process. Every promise below resolves when its work is as
 * durable as the store's level says, and rejects with nothing half-done. Many processes may use one store at a time.
 */
export interface Store extends AsyncDisposable {
  /** Where it is, without passwords. */
  readonly url: string
  /** Nothing in it outlives this process, so that nobody else can come to need it. */
  readonly isTemporary?: boolean
  readonly sessions: SessionStore
  readonly blobs: BlobStore
  readonly runs: RunStore
  /**
   * A value as it would be written, at once: without secrets, and the very same one when it holds none. What is kept of it later is
   * what this gives, so a redact hook must leave alone what it returned before. An error comes back as a copy of its class.
   */
  clean<T extends Session | Json | Error>(value: T): T
  /**
   * How many characters at the end of a text may be the beginning of a secret: whoever shows a text while it is still growing holds those
   * back. A store without it has each piece cleaned by itself.
   */
  unfinished?(text: string): number
  /** Frees what no session, run or tag reaches any more. */
  gc(options?: GcOptions): Promise<GcReport>
  /** Waits for what was accepted, then lets go. Everything asked of the store afterwards is refused. */
  close(): Promise<void>
}

/**
 * `full`: an acknowledged write survives a power cut. `normal`: it survives the death of this process at any moment;
 * a power cut may take the newest writes with it, never the store. See docs/store.md for each driver.
 */
export type Durability = 'normal' | 'full'

export interface PutOptions {
  /** Names the session, as `tag` does. */
  readonly tag?: string
  /** The tag is set only by whoever keeps the session first. */
  readonly onlyNew?: boolean
}

export interface SessionStore {
  /**
   * Keeps a session under its id. Chunks the store already has are not written again: cost follows what is new, not the
   * history. Returns the session as it was kept, which differs from the one given only where secrets were redacted.
   * A session kept before under this id may only have been extended.
   */
  put(session: Session, options?: PutOptions): Promise<Session>
  /**
   * Adds chunks behind the newest chunk of a kept session, whoever wrote that one. With `after`, only if it is the
   * newest. The one way for several writers to extend one session.
   */
  append(
    id: string,
    chunks: readonly ChunkInput[],
    options?: { readonly after?: Digest },
  ): Promise<SessionRow>
  /** By id, unique prefix of an id (four characters at least), or tag. Unknown and ambiguous names are refused with the nearest ids. */
  get(name: string): Promise<Session>
  /** The same without the chunks. */
  row(name: string): Promise<SessionRow>
  /** Chunks `from` (inclusive) to the newest, as recorded. */
  chunks(name: string, from?: number): Promise<readonly ChunkRecord[]>
  /** Newest first. `cursor` of one page, given to the next call, continues behind it, unmoved by what was added since. */
  list(filter?: SessionFilter): Promise<SessionPage>
  /** Chunks in which all words of the query occur, best match first. Covers everything said and done. */
  search(query: string, options?: SearchOptions): Promise<readonly SearchHit[]>
  /**
   * Names a session. A tag names one session at a time; moving it is allowed. With `from`, only while it names that one: when somebody else has
   * moved it, the call is refused with `session-conflict`.
   */
  tag(name: string, tag: string, options?: { readonly from?: string }): Promise<void>
  untag(tag: string): Promise<void>
  /** Forgets a session and its tags. Chunks that others share stay; `gc` frees the rest. */
  delete(name: string): Promise<void>
  /**
   * Tells about every session that is put or extended from now on (or since a cursor), by any process. Several
   * changes of one session may arrive as one. A listener that throws is reported and goes on being told.
   */
  subscribe(listener: (change: SessionChange) => void, options?: SubscribeOptions): Disposable
}

/** A session without its chunks. */
export interface SessionRow {
  readonly id: string
  readonly head: Digest | null
  readonly length: number
  readonly branch: string
  readonly lineage: Lineage
  /** When it was first kept, and last extended, in milliseconds since the epoch. */
  readonly created: number
  readonly updated: number
  readonly tags: readonly string[]
}

export interface ChunkRecord {
  readonly id: Digest
  readonly index: number
  readonly chunk: Omit<Chunk, 'id' | 'state' | 'index' | 'text'>
}

export interface SessionFilter {
  readonly operation?: string
  readonly by?: string
  readonly label?: string
  /** Only children of this session id, and those that came from it by steps that were not kept. */
  readonly parent?: string
  readonly tagged?: boolean
  /** First kept at or after, before: milliseconds since the epoch. */
  readonly since?: number
  readonly until?: number
  /** Rows in a page; 50 by default, 1000 at most. */
  readonly limit?: number
  readonly cursor?: string
}

export interface SessionPage {
  readonly rows: readonly SessionRow[]
  /** Absent on the last page. */
  readonly cursor?: string
}

export interface SearchOptions {
  readonly kind?: ChunkKind
  /** 20 by default, 1000 at most. */
  readonly limit?: number
}

export interface SearchHit {
  readonly chunk: Digest
  /** The session that recorded it first; forks of it share it. When that one was deleted, another that has the chunk. */
  readonly session: string
  readonly index: number
  readonly kind: ChunkKind
  readonly by?: string
  readonly at: number
  /** Text around the first match. */
  readonly snippet: string
}

export interface SessionChange {
  readonly session: SessionRow
  /** Resumes a later subscription: nothing after this change is left out, and a few just before it may be told again. */
  readonly cursor: string
}

export interface SubscribeOptions {
  /** Only this session. */
  readonly session?: string
  readonly cursor?: string
}

/** Bytes by their sha256. Those that no chunk and no journal entry came to hold are loose, and `gc` frees them. */
export interface BlobStore {
  put(bytes: Uint8Array | string): Promise<Digest>
  get(id: Digest): Promise<Uint8Array>
  has(id: Digest): Promise<boolean>
  /** How many of these are there. They count as written now, so that `gc` leaves them to whoever is about to refer to them. */
  keep?(ids: readonly Digest[]): Promise<number>
}

/** Runs and their journals: the tables that replay and resume stand on. */
export interface RunStore {
  create(run: NewRun): Promise<RunRow>
  get(id: string): Promise<RunRow>
  /** Newest first. */
  list(filter?: RunFilter): Promise<readonly RunRow[]>
  /**
   * Makes this owner the only one who may write to the run, until the lease ends. Refused while another owner's lease
   * lasts, unless it is the one in `instead`, who is known to be gone. Each claim raises the fence; a log with a lower one can
   * write nothing more.
   */
  claim(id: string, owner: string, leaseMs: number, options?: { readonly instead?: string }): Promise<RunLog>
  /**
   * Creates a run and claims it with the first write of its log, in one transaction. Its id was made for it: when there is a run of this id
   * already, that write is refused.
   */
  begin(run: NewRun, owner: string, leaseMs: number): RunLog
  /**
   * Claims a run that waits in one of the queues, or whose driver's lease has ended: the highest priority first, then the oldest. Of
   * several who ask at once each is given another. Undefined when there is none.
   */
  claimNext(owner: string, leaseMs: number, queues: readonly string[]): Promise<RunLog | undefined>
  /** The log of a claim that was made before, by its fence. */
  log(id: string, fence: number): RunLog
  /**
   * Asks whoever drives a run to stop; the driver learns of it when it renews its lease, or by following the run. A run that nobody drives,
   * queued or waiting, is cancelled at once. One that has ended is left as it is.
   */
  cancel(id: string, request?: Omit<CancelRequest, 'at'>): Promise<RunRow>
  /**
   * The outcome of an entry of kind `approval`, by anybody: who decides does not drive the run. One that was decided before is refused. A
   * run of a queue that waits is queued again.
   */
  decide(id: string, key: string, occurrence: number, outcome: Json): Promise<JournalEntry>
  entry(id: string, key: string, occurrence: number): Promise<JournalEntry | undefined>
  /** In the order of their intents. */
  journal(id: string): Promise<readonly JournalEntry[]>
  /**
   * Tells about every run whose row changes from now on (or since a cursor), by any process; a renewed lease is no change. Several changes
   * of one run may arrive as one.
   */
  subscribe(
    listener: (change: { readonly run: RunRow; readonly cursor: string }) => void,
    options?: { readonly run?: string; readonly cursor?: string },
  ): Disposable
}

export interface RunFilter {
  readonly status?: RunStatus
  /** Rows in a page; 50 by default, 1000 at most. */
  readonly limit?: number
  /** Only runs older than this one: the last of a page gives the next page. */
  readonly before?: string
}

/** `queued`: nobody has taken it yet, or it may go on. */
export type RunStatus = 'queued' | 'running' | 'waiting' | 'needs-review' | 'done' | 'failed' | 'cancelled'

export interface NewRun {
  readonly id: string
  /** Session ids: what went in, and what came out so far. */
  readonly input?: string
  readonly output?: string
  readonly data?: JsonObject
  /** Leaves it to whoever takes runs of this queue; without, it is for its creator to claim. */
  readonly queue?: RunQueue
}

export interface RunQueue {
  readonly name: string
  /** A whole number; higher is taken first. 0 by default. */
  readonly priority?: number
  /** Not taken before, in milliseconds since the epoch by the store's clock. */
  readonly notBefore?: number
}

export interface CancelRequest {
  readonly at: number
  readonly by?: string
  readonly reason?: string
}

export interface RunChange {
  readonly status?: RunStatus
  readonly output?: string
  readonly data?: JsonObject
  /** Gives the lease back. */
  readonly release?: boolean
}

export interface RunRow {
  readonly id: string
  readonly status: RunStatus
  readonly owner: string | null
  readonly fence: number
  /** When the lease ends, in milliseconds since the epoch by the store's clock; 0 when nobody holds it. */
  readonly leaseUntil: number
  readonly input: string | null
  readonly output: string | null
  readonly data: JsonObject
  /** Absent when no worker is to take it. */
  readonly queue?: RunQueue
  /** Set once somebody has asked for its end. */
  readonly cancel?: CancelRequest
  readonly created: number
  readonly updated: number
}

export interface NewEntry {
  readonly key: string
  readonly occurrence: number
  /** The kind of effect: model, tool, memory, route, approval, or a name of the user's own. */
  readonly kind: string
  readonly request: Json
}

/** The writing side of a claimed run: the one way to change it. Everything is refused with `run-fenced` once somebody else has claimed it. */
export interface RunLog {
  readonly run: string
  readonly fence: number
  /**
   * Writes in this order, each kept or refused for itself; what is thrown, or rejects, is the first refusal. Returns nothing when all of it
   * is durable already: in a store that never waits nobody else has to.
   */
  append(writes: readonly RunWrite[]): Promise<void> | undefined
  /** Resolves when everything appended so far is durable; rejects with the first refusal since it was last asked. */
  settled(): Promise<void>
  /** Extends the lease. */
  renew(leaseMs: number): Promise<RunRow>
  /** Gives the run back, for others to claim. */
  release(): Promise<void>
}

export type RunWrite =
  | { readonly kind: 'update'; readonly change: RunChange }
  /** Writes down that an effect is about to happen. The same entry again changes nothing. */
  | { readonly kind: 'intend'; readonly entry: NewEntry }
  /** Writes down how it ended. An entry has one outcome for ever: a second one is refused. */
  | {
      readonly kind: 'conclude'
      readonly key: string
      readonly occurrence: number
      readonly outcome: Json
    }
  /** Keeps a session. */
  | { readonly kind: 'put'; readonly session: Session }

export interface JournalEntry extends NewEntry {
  readonly run: string
  readonly intendedAt: number
  readonly concludedAt?: number
  readonly outcome?: Json
}

export interface GcOptions {
  /** Only what was written at least this long ago, in milliseconds; an hour by default, so that work under way is safe. */
  readonly olderThan?: number
  /** Only count. */
  readonly dryRun?: boolean
}

export interface GcReport {
  readonly dryRun: boolean
  readonly chunks: number
  readonly blobs: number
  readonly bytes: number
}

/** How `openStore` opens a store. */
export interface StoreOptions {
  /** `full` by default. */
  readonly durability?: Durability
  /** Sees every text before it is written, after the default redaction; returns what to write instead. */
  readonly redact?: Redact
  /** Values that must never be written, each replaced by `[redacted:NAME]`; by default the secrets found in the environment. */
  readonly secrets?: Readonly<Record<string, string>>
  /** Refuse every write. A search then covers what the last search of a writer has indexed. */
  readonly readOnly?: boolean
  /** How long to wait for another process's write before the store counts as busy, in milliseconds; 30,000 by default. */
  readonly busyTimeout?: number
}

export type Redact = (text: string) => string
