import type { Digest } from '../base/digest.ts'
import type { Json, JsonObject } from '../base/json.ts'
import type {
  AnswerPart,
  AnswerPartInput,
  Extras,
  Part,
  PartInput,
  ReasoningPart,
  ToolCallPart,
} from './part.ts'
import type { Usage } from './usage.ts'

/**
 * What every chunk carries besides its kind. All of it is evidence: it moves `id` and never `state`
 * (`branch` moves both).
 */
interface Recorded extends Extras {
  /** When it happened, in milliseconds since the epoch. */
  readonly at: number
  /** Who produced it: a path such as `Review/writer`. */
  readonly by?: string
  /** The branch it was appended on; absent on the trunk. Set by the session. */
  readonly branch?: string
  /** The id it had on its own branch, when a merge linked it in behind another chunk. Set by the session. */
  readonly origin?: Digest
}

export interface SystemBody extends Recorded {
  readonly kind: 'system'
  readonly content: readonly Part[]
}

export interface UserBody extends Recorded {
  readonly kind: 'user'
  readonly content: readonly Part[]
}

export interface AssistantBody extends Recorded {
  readonly kind: 'assistant'
  readonly content: readonly AnswerPart[]
  readonly model?: string
  readonly finishReason?: string
  readonly usage?: Usage
  /** Digest of the agent prompt that was prepended for this answer. */
  readonly prompt?: Digest
}

export interface ToolResultBody extends Recorded {
  readonly kind: 'tool-result'
  readonly callId: string
  readonly tool: string
  readonly args?: Json
  readonly outcome: ToolOutcome
  readonly durationMs?: number
  /** The sandbox that ran it. */
  readonly ranOn?: JsonObject
  readonly files?: readonly FileChange[]
  /** Tree digest of the workspace when the call began. */
  readonly before?: Digest
  /** Tree digest of the workspace after the call: the files belong to what an agent perceives. */
  readonly tree?: Digest
  /** The sessions that calls inside it made, each as it stood when the call ended. */
  readonly sessions?: readonly InsideSession[]
  /** What model calls inside it spent, those of nested tools included. */
  readonly usage?: Usage
}

/** A session that was made inside a tool or an effect. */
export interface InsideSession {
  readonly session: string
  readonly head: Digest | null
}

/** Something of the user's own that touched the world; see `effect`. */
export interface EffectBody extends Recorded {
  readonly kind: 'effect'
  readonly name: string
  readonly request?: Json
  readonly outcome: EffectOutcome
  /** What it does to the world, as it was declared: `external`, `idempotent` … */
  readonly effect?: string
  /** When it began, in milliseconds since the epoch; `at` is when it went on the record. */
  readonly began?: number
  readonly durationMs?: number
  /** The tool call that it was made in. */
  readonly callId?: string
  readonly sessions?: readonly InsideSession[]
  readonly usage?: Usage
}

export type EffectOutcome =
  | { readonly kind: 'value'; readonly value: Json }
  | { readonly kind: 'error'; readonly error: string; readonly message: string }

export type ToolOutcome =
  | { readonly kind: 'value'; readonly value: Json; readonly content?: readonly Part[] }
  | { readonly kind: 'error'; readonly error: string; readonly message: string; readonly detail?: Json }
  | { readonly kind: 'denied'; readonly reason: string }

export interface FileChange {
  readonly path: string
  readonly change: 'added' | 'modified' | 'deleted' | 'renamed'
  readonly from?: string
  readonly patch?: string
}

export interface MemoryBody extends Recorded {
  readonly kind: 'memory'
  readonly op: 'recall' | 'remember' | 'commit' | 'forget'
  /** The store's name. */
  readonly store: string
  readonly query?: string
  readonly hits?: readonly MemoryHit[]
  /** A recall: exactly the text that was put before the model. */
  readonly injected?: string
  /** Ids of the entries written or forgotten. */
  readonly entries?: readonly string[]
  /** Ids of the chunks the written entries came from. */
  readonly from?: readonly Digest[]
  readonly usage?: Usage
  /** Why it failed, when it did. */
  readonly error?: string
}

export interface MemoryHit extends Extras {
  readonly id: string
  readonly text: string
  readonly score: number
}

export interface PlacementBody extends Recorded {
  readonly kind: 'placement'
  readonly backend: string
  /** A path, or whatever the backend takes. */
  readonly spec?: string | JsonObject
  readonly workspace?: Workspace
}

export interface Workspace extends Extras {
  readonly path?: string
  /** Digest of the files, the same wherever they lie. */
  readonly tree?: Digest
}

export interface RouteBody extends Recorded {
  readonly kind: 'route'
  readonly candidates: readonly { readonly name: string; readonly description?: string }[]
  /** Name of the chosen candidate; null when none fits. */
  readonly choice: string | null
  readonly reason?: string
  readonly model?: string
  readonly usage?: Usage
}

/** A chunk without a verdict asks; a later one with the same `approval` and a verdict answers. */
export interface ApprovalBody extends Recorded {
  readonly kind: 'approval'
  readonly approval: string
  readonly callId?: string
  readonly tool?: string
  readonly args?: Json
  readonly question?: string
  readonly verdict?: 'approved' | 'rejected' | 'edited' | 'answered' | 'expired'
  readonly decidedBy?: string
  readonly reason?: string
  readonly answer?: Json
}

export interface VerdictBody extends Recorded {
  readonly kind: 'verdict'
  readonly verdict: 'accept' | 'reject'
  /** The session, branch or chunk that was judged. */
  readonly subject: string
  readonly reason?: string
  readonly score?: number
}

export interface MergeBody extends Recorded {
  readonly kind: 'merge'
  readonly branches: readonly MergedBranch[]
  /** Head of the shared history; null when the sessions were unrelated. */
  readonly ancestor: Digest | null
  readonly policy: string
  readonly conflicts?: readonly MergeConflict[]
  /** Tree digest of the merged workspace. */
  readonly tree?: Digest
  /** What the branches spent on chunks that the policy left out: in all, and on each. */
  readonly usage?: Usage
  readonly leftOut?: readonly LeftOutChunk[]
}

export interface MergedBranch {
  readonly session: string
  readonly head: Digest | null
  readonly branch: string
  /** How many chunks the branch had of its own. */
  readonly chunks: number
}

export interface LeftOutChunk {
  /** Its id, or its origin if it had been merged before. */
  readonly chunk: Digest
  readonly usage: Usage
  /** It was spent inside a tool or an effect, by sessions of their own. */
  readonly inside?: true
}

export interface MergeConflict {
  readonly path: string
  /** How the sides differ: `content`, `modify-delete` … */
  readonly kind?: string
  /** `ours`, `theirs`, `markers`, `written` for bytes of neither side, `deleted`. */
  readonly settled: string
  readonly by?: string
}

export interface CompressBody extends Recorded {
  readonly kind: 'compress'
  /** Ids (or origins) of the chunks that the summary stands for in the model's view. */
  readonly replaced: readonly Digest[]
  readonly summary: string
  readonly model?: string
  readonly usage?: Usage
}

export interface ErrorBody extends Recorded {
  readonly kind: 'error'
  readonly error: string
  readonly message: string
  readonly attempt?: number
  readonly retry?: 'never' | 'now' | 'after'
  readonly usage?: Usage
  readonly detail?: Json
}

export interface NoteBody extends Recorded {
  readonly kind: 'note'
  readonly name: string
  readonly data?: Json
}

export type ChunkBody =
  | SystemBody
  | UserBody
  | AssistantBody
  | ToolResultBody
  | EffectBody
  | MemoryBody
  | PlacementBody
  | RouteBody
  | ApprovalBody
  | VerdictBody
  | MergeBody
  | CompressBody
  | ErrorBody
  | NoteBody

export type ChunkKind = ChunkBody['kind']

/** What a chunk knows once it is part of a chain. The digests are computed when first asked for. */
export interface Linked {
  readonly id: Digest
  /** Digest of everything perceivable up to and including this chunk. */
  readonly state: Digest
  readonly index: number
  /** What it says, for people: the text of its content, the outcome, the summary. */
  readonly text: string
}

/** One piece of evidence in a session: frozen through and through. */
export type Chunk<K extends ChunkKind = ChunkKind> = K extends ChunkKind
  ? Extract<ChunkBody, { kind: K }> & Linked
  : never

type Given<Body, Set extends PropertyKey = never> = Body extends ChunkBody
  ? Omit<Body, 'at' | 'branch' | 'origin' | 'usage' | Set> & { readonly at?: number } & Spent<Body>
  : never

/** Counts that are left out are zero; a total that is left out is the sum. */
type Spent<Body> = Body extends { readonly usage?: Usage } ? { readonly usage?: Partial<Usage> } : unknown

/** One of `content` and its shorthands. */
type Said = { readonly content: string | readonly PartInput[] } | { readonly text: string }
type Answered =
  | { readonly content: string | readonly AnswerPartInput[] }
  | {
      readonly text?: string
      readonly reasoning?: string | readonly Omit<ReasoningPart, 'type'>[]
      readonly toolCalls?: readonly Omit<ToolCallPart, 'type'>[]
    }

/** A chunk as a caller writes it; `append` fills in the rest. */
export type ChunkInput =
  | (Given<SystemBody, 'content'> & Said)
  | (Given<UserBody, 'content'> & Said)
  | (Given<AssistantBody, 'content'> & Answered)
  | Given<Exclude<ChunkBody, SystemBody | UserBody | AssistantBody>>
