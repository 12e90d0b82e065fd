import type { JsonObject } from '../base/json.ts'
import type { Session } from '../session/session.ts'

/** A name, or whatever the backend takes: `'local'`, `{ backend: 'local', path: './notes' }`. It may be recorded, so it holds no secrets. */
export type MemorySpec = string | JsonObject

/** A kind of place where memories are kept. */
export interface MemoryBackend {
  /** What `memory: 'local'` calls it. */
  readonly name: string
  readonly capabilities: MemoryCapabilities
  /** Whether it can open a store here, and if not, what is missing. A backend without it always can. */
  probe?(): Promise<{ readonly available: boolean; readonly reason?: string }>
  /** Opens a store, or makes it. Two opens with the same spec see the same memories. */
  open(spec?: JsonObject, options?: { readonly signal?: AbortSignal }): Promise<MemoryStore>
}

/** What a store can do. What it cannot is refused with `unsupported`, never left out silently. */
export interface MemoryCapabilities {
  /** Finds by meaning, where an embedding model is configured. */
  readonly vectors: boolean
  /** Keeps superseded texts: `history`. */
  readonly history: boolean
  /** Entries can end by themselves: `expires`. */
  readonly expiry: boolean
  /** Entries can wait for a commit, seen only by the branch that wrote them: `lane`. */
  readonly lanes: boolean
  /** Takes in resources: `ingest`. */
  readonly resources: boolean
}

/**
 * One store of memories. Every promise resolves when its work is durable and rejects with nothing half-done. Contents are untrusted:
 * whatever reads them shows them as such. Several processes may use one store at a time.
 */
export interface MemoryStore extends AsyncDisposable {
  /** What chunks call it: the same for everyone who opens the same store. */
  readonly name: string
  readonly backend: string
  readonly capabilities: MemoryCapabilities
  /**
   * Keeps entries, all or none. One with a `key` that the store already holds in that scope is not written again; it comes back as it stands.
   */
  write(entries: readonly NewMemory[], options?: WriteOptions): Promise<readonly Memory[]>
  /** Replaces the text or the labels. The old text stays in `history`. */
  update(ref: MemoryRef, change: MemoryChange, options?: WriteOptions): Promise<Memory>
  /** By id or URI; null when there is none, or it was forgotten or has expired. */
  read(ref: MemoryRef): Promise<Memory | null>
  /** Newest first. `cursor` of one page, given to the next call, continues behind it. */
  list(filter?: MemoryFilter & { readonly limit?: number; readonly cursor?: string }): Promise<MemoryPage>
  /** Scopes and categories below a URI, with how many entries each holds: `memory://` is all of them. */
  tree(uri?: string, options?: { readonly depth?: number }): Promise<MemoryTree>
  /** What fits the words (and the meaning, where it can), best first. Nothing that fits is an empty list. */
  find(query: string, options?: FindOptions): Promise<Found>
  /**
   * Ends entries: they are found and read no more. Returns how many there were. A filter covers entries of every lane, unlike that of a
   * find; with `lane`, only those that wait on that lane or below it. A filter of nothing is refused.
   */
  forget(what: MemoryRef | MemoryFilter, options?: WriteOptions): Promise<number>
  /** Every text that an entry had, oldest first; what replaced each, and when. */
  history(ref: MemoryRef): Promise<readonly Memory[]>
  /** Keeps what a session said and did so that it can be found again. Committing it again writes only what is new. */
  commit(session: Session, options?: CommitOptions): Promise<Committed>
  /** Takes in a text or a file as searchable pieces under `memory://resource/…`; again under the same name replaces it. */
  ingest(resource: Resource, options?: WriteOptions): Promise<readonly Memory[]>
  close(): Promise<void>
}

/** An id, or `memory://scope/…/id`. */
export type MemoryRef = string

/**
 * Whose memory it is. A scope is a kind and a name: `user/ada`, `agent/researcher`, `session/0198…`, `resource/handbook.md`, or a kind of
 * your own. The name may be left out: `user` is the one user of a store that has only one.
 */
export type Scope = string

export interface NewMemory {
  readonly text: string
  /** `agent` by default. */
  readonly scope?: Scope
  /** `fact`, `turn`, `decision`, `failure`, `preference` or a word of your own; `fact` by default. */
  readonly category?: string
  readonly tags?: readonly string[]
  readonly metadata?: JsonObject
  /** When it happened, in milliseconds since the epoch; now by default. */
  readonly at?: number
  /** When it ends by itself. */
  readonly expires?: number
  readonly source?: MemorySource
  /** Tells the same thing written twice apart from two things: one entry for each key in a scope. */
  readonly key?: string
  /** Written on a branch that may yet be rejected: only sessions on this lane, and on those forked off it, see it until a commit settles it. */
  readonly lane?: string
  /** `rejected`: what a branch learned that was not adopted; it is found, and says so. */
  readonly standing?: MemoryStanding
}

export type MemoryStanding = 'adopted' | 'rejected'

/** Where an entry came from. */
export interface MemorySource {
  readonly session?: string
  /** Ids of the chunks. */
  readonly chunks?: readonly string[]
  /** Place in an ordered conversation or document: entries with the same `series` are neighbours in the order of `index`. */
  readonly series?: string
  readonly index?: number
  /** File name or URL of a resource. */
  readonly resource?: string
  readonly by?: string
}

export interface Memory {
  readonly id: string
  /** `memory://user/ada/preference/ID`. */
  readonly uri: string
  readonly text: string
  readonly scope: Scope
  readonly category: string
  readonly tags: readonly string[]
  readonly metadata: JsonObject
  readonly at: number
  readonly written: number
  readonly expires?: number
  readonly source: MemorySource
  readonly key?: string
  readonly lane?: string
  readonly standing: MemoryStanding
  /** Counts its updates: 1 for an entry that was never updated. */
  readonly version: number
  /** In a history: when a newer text replaced this one. */
  readonly replaced?: number
}

export type MemoryChange = Partial<
  Pick<NewMemory, 'text' | 'category' | 'tags' | 'metadata' | 'expires' | 'source' | 'lane' | 'standing'>
>

export interface MemoryFilter {
  /** Any of these. `user` also covers `user/ada`. */
  readonly scope?: Scope | readonly Scope[]
  readonly category?: string | readonly string[]
  /** All of these. */
  readonly tags?: readonly string[]
  /** Fields of the metadata that equal these. */
  readonly metadata?: JsonObject
  /** Happened at or after, before. */
  readonly since?: number
  readonly until?: number
  readonly standing?: MemoryStanding
  /** The lane of whoever asks: its own uncommitted entries and those of the lanes it was forked from are seen, no sibling's. */
  readonly lane?: string
  /** Who asks, as a scope such as `agent/helper`: what belongs to another user or agent by name is left out. Everything is seen without it. */
  readonly asker?: Scope
}

export interface FindOptions extends MemoryFilter {
  /** 5 by default, 100 at most. */
  readonly limit?: number
  /** Hits below this score are left out; the backend's own floor by default. Between 0 and 1. */
  readonly floor?: number
  /** `auto` (default) uses meaning where the store can. */
  readonly mode?: 'auto' | 'words' | 'vectors'
  readonly signal?: AbortSignal
}

export interface Found {
  readonly hits: readonly Hit[]
  /** How they were found. */
  readonly mode: 'words' | 'vectors' | 'both'
  /** Why it was not found by meaning although it was to be: the embedding model failed, or is not done yet. */
  readonly fellBack?: string
}

export interface Hit extends Memory {
  /** Between 0 and 1, comparable between queries: about how likely it is that the entry answers the query. */
  readonly score: number
}

export interface MemoryPage {
  readonly entries: readonly Memory[]
  readonly cursor?: string
}

export interface MemoryTree {
  readonly uri: string
  readonly entries: number
  readonly children: readonly MemoryTree[]
}

export interface WriteOptions {
  readonly signal?: AbortSignal
}

export interface CommitOptions extends WriteOptions {
  /** Where the entries go. By default one scope for a conversation and all its forks: `session/` and the beginning of its first chunk's id. */
  readonly scope?: Scope
  /** Entries that were made of the session elsewhere (by a model): they are written instead of its turns. */
  readonly entries?: readonly NewMemory[]
}

export interface Committed {
  /** What was written now; what was there already is not in it. */
  readonly written: readonly Memory[]
  /** Ids of the chunks that the written entries came from. */
  readonly from: readonly string[]
  /** Entries of the session's lane, and those that its own record names, that everyone sees from now on. */
  readonly settled: number
}

/** A text, a file of this machine, or an address that the caller has allowed. Nothing else is read. */
export type Resource =
  | { readonly name: string; readonly text: string; readonly scope?: Scope }
  | { readonly file: string; readonly root: string; readonly name?: string; readonly scope?: Scope }
  | {
      readonly url: string
      /** Host names that may be asked; no others, and no address of this machine or a private network, wherever they lead. */
      readonly allow: readonly string[]
      readonly name?: string
      readonly scope?: Scope
    }
