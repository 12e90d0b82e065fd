import type { Digest } from '../../base/digest.ts'
import type { ChunkKind, FileChange } from '../../session/chunk.ts'
import type { Usage } from '../../session/usage.ts'
import type { RunStatus } from '../../store/spec.ts'
import type { SignatureReport } from '../signature.ts'

/**
 * What happened, as data: JSON through and through, and complete enough that the page and the Markdown are made of it alone. Steps are named
 * by their number, `n`, everywhere. See docs/dossier.md.
 */
export interface Dossier {
  readonly format: 'openrath/dossier'
  readonly version: 1
  /** When it was made, in milliseconds since the epoch. */
  readonly madeAt: number
  /** Versions and machine, as whoever made it says: `openrath`, `node`, `platform`. */
  readonly environment: Readonly<Record<string, string>>
  readonly subject: Subject
  /** What was asked, until the first answer. */
  readonly task: readonly Cut[]
  readonly answer: Cut | null
  readonly patch: FinalPatch
  /** In the order of their steps. */
  readonly sessions: readonly SessionNode[]
  readonly branches: readonly BranchReport[]
  /** Everything on the record once, a session's steps together. */
  readonly steps: readonly Step[]
  readonly tools: readonly ToolSummary[]
  readonly files: readonly FileSummary[]
  /** What the program did itself, through `effect`. */
  readonly effects: readonly EffectReport[]
  readonly approvals: readonly ApprovalReport[]
  readonly memory: readonly MemoryReport[]
  readonly failures: readonly FailureReport[]
  readonly spending: Spending
  readonly prompts: readonly PromptReport[]
  readonly integrity: Integrity
  /** What the record proves and what it does not. */
  readonly statements: readonly Statement[]
}

/** Text as it was recorded. Of a longer one only the beginning is here; then its whole length and the digest of all of it are, too. */
export interface Cut {
  readonly text: string
  readonly characters?: number
  readonly digest?: Digest
}

export interface Subject {
  readonly kind: 'run' | 'session'
  readonly id: string
  /** The session that everything led to. */
  readonly session: string
  readonly head: Digest | null
  readonly title: string
  readonly status?: RunStatus
  readonly workflow?: string
  readonly startedAt: number
  readonly endedAt: number
  readonly chunks: number
}

export interface SessionNode {
  readonly id: string
  readonly parents: readonly string[]
  readonly operation: string
  readonly at: number
  readonly by?: string
  readonly label?: string
  /** Index in `branches`. */
  readonly branch: number
  readonly head: Digest | null
  readonly length: number
  /** Sessions whose steps its own follow: the one it went on from, and those it merged. */
  readonly after: readonly string[]
  /** How many steps are its own, and the first of them. The session of a call that only called others has none. */
  readonly steps: number
  readonly firstStep?: number
  readonly isFinal?: true
}

export type BranchStatus = 'adopted' | 'rejected' | 'unjudged'

/** One line of work: what was done between a fork or rewind and its end. */
export interface BranchReport {
  readonly name: string
  readonly began: string
  readonly status: BranchStatus
  /** Why, in a sentence. */
  readonly reason: string
  /** Steps that say so. */
  readonly said: readonly number[]
  readonly steps: number
  /** How many of them are part of the final session's history. */
  readonly stepsInFinal: number
  readonly agents: readonly string[]
  readonly usage: Usage
  readonly score?: number
}

export interface Step {
  readonly n: number
  readonly kind: ChunkKind
  readonly chunk: Digest
  readonly index: number
  readonly session: string
  /** Index in `branches`. */
  readonly branch: number
  readonly at: number
  readonly by?: string
  /** Part of the final session's history. */
  readonly inFinal: boolean
  readonly text?: Cut
  readonly reasoning?: Cut
  readonly model?: string
  readonly prompt?: Digest
  readonly usage?: Usage
  /** What an answer asked for. `step` is that of the result; without one, nothing came back. */
  readonly calls?: readonly {
    readonly name: string
    readonly step?: number
    readonly args?: readonly Argument[]
  }[]
  readonly tool?: ToolStep
  /** What else the chunk says, by name. */
  readonly facts?: readonly Fact[]
}

export interface Fact {
  readonly name: string
  readonly value: string
}

export interface Argument {
  readonly name: string
  readonly value: Cut
}

export interface ToolStep {
  readonly name: string
  readonly callId: string
  readonly args: readonly Argument[]
  readonly outcome: 'value' | 'error' | 'denied'
  /** The code of an error. */
  readonly error?: string
  readonly result?: Cut
  /** Of a command. Null when a signal ended it. */
  readonly exitCode?: number | null
  readonly signal?: string
  readonly timedOut?: true
  readonly truncated?: true
  readonly stdout?: Cut
  readonly stderr?: Cut
  readonly durationMs?: number
  /** The sandbox: `local /work`. */
  readonly ranOn?: string
  readonly files?: readonly FileStep[]
  /** Paths that had changed by nobody of this run. */
  readonly drift?: readonly string[]
  /** The sessions that calls inside it made; their steps are here, too. */
  readonly sessions?: readonly string[]
}

export interface FileStep {
  readonly path: string
  readonly change: FileChange['change']
  readonly from?: string
  readonly patch?: Cut
}

export interface ToolSummary {
  readonly name: string
  /** As the tool declared it, by the journal of the run. */
  readonly effect?: string
  readonly calls: number
  readonly errors: number
  readonly denied: number
  /** Commands that ended with another exit code than 0. */
  readonly nonZero: number
  readonly durationMs: number
  readonly steps: readonly number[]
}

export interface FileSummary {
  readonly path: string
  readonly changes: readonly { readonly step: number; readonly change: FileChange['change'] }[]
  readonly agents: readonly string[]
  readonly sandboxes: readonly string[]
  /** Whether a branch that is part of the final session changed it. */
  readonly inFinal: boolean
}

export interface FinalPatch {
  /** `trees`: computed from the workspace's trees. `recorded`: the patches of the single steps, in order. */
  readonly source: 'trees' | 'recorded' | 'none'
  readonly from?: Digest
  readonly to?: Digest
  readonly files: readonly (FileStep & { readonly step?: number })[]
  /** Why there is nothing better. */
  readonly note?: string
}

export interface EffectReport {
  readonly step: number
  readonly name: string
  readonly by?: string
  /** What it does to the world, as it was declared. */
  readonly effect?: string
  readonly request?: Cut
  readonly outcome: 'value' | 'error'
  readonly result: Cut
  readonly durationMs?: number
}

export interface ApprovalReport {
  readonly id: string
  readonly tool?: string
  readonly question?: string
  readonly askedStep?: number
  readonly decidedStep?: number
  readonly askedAt?: number
  readonly decidedAt?: number
  readonly verdict: 'approved' | 'rejected' | 'edited' | 'answered' | 'expired' | 'open'
  readonly decidedBy?: string
  readonly reason?: string
  readonly args: readonly Argument[]
}

export interface MemoryReport {
  readonly step: number
  readonly op: 'recall' | 'remember' | 'commit' | 'forget'
  readonly store: string
  readonly by?: string
  readonly query?: string
  readonly hits: readonly { readonly id: string; readonly score: number; readonly text: Cut }[]
  readonly injected?: Cut
  readonly entries: readonly string[]
  readonly error?: string
}

export interface FailureReport {
  /** Missing where only the journal has it. */
  readonly step?: number
  readonly what: 'model' | 'tool' | 'denied' | 'command' | 'effect' | 'memory'
  readonly error: string
  readonly message: string
  readonly attempt?: number
  readonly retry?: string
  /** It ended the run, and a resume tried it again. */
  readonly resumed?: boolean
  readonly by?: string
}

export interface Spending {
  readonly total: Usage
  readonly agents: readonly Spent[]
  readonly models: readonly Spent[]
  /** Of `total`, what the journal says was spent and no session that was kept. */
  readonly unkept?: Usage
  /** Answers and summaries without a price: their cost is not in the sums. */
  readonly unpriced: number
}

export interface Spent {
  readonly name: string
  readonly answers: number
  readonly usage: Usage
}

export interface PromptReport {
  readonly digest: Digest
  readonly agents: readonly string[]
  readonly answers: number
  /** Absent when the store does not have it. */
  readonly text?: Cut
}

export interface Integrity {
  /** Chunks whose digest was computed anew when this was made. */
  readonly checked: number
  readonly ok: boolean
  readonly problem?: { readonly session: string; readonly index: number; readonly reason: string }
  /** The heads that cover all of it. */
  readonly heads: readonly { readonly session: string; readonly branch: number; readonly head: Digest }[]
  /** As whoever made the dossier has checked them. */
  readonly signatures: readonly SignatureReport[]
  /** Sessions that others came from and that were not found. */
  readonly missing: readonly string[]
}

export interface Statement {
  readonly about: string
  readonly proven: boolean
  readonly text: string
  readonly steps?: readonly number[]
}
