import type { Digest } from '../base/digest.ts'
import type { JsonObject } from '../base/json.ts'
import type { ChunkInput, FileChange, InsideSession, ToolOutcome } from '../session/chunk.ts'
import type { Usage } from '../session/usage.ts'

/** A call that ran, as the journal keeps it: everything that its chunk says of it. */
export interface ToolRecord {
  readonly outcome: ToolOutcome
  readonly durationMs: number
  readonly evidence?: ToolEvidence
  /** When it ended, in milliseconds since the epoch; the journal has it beside this. */
  readonly at?: number
  /** What was done inside it; the journal has it beside this. */
  readonly inside?: ToolInside
}

/** Sessions, spending and chunks of what a tool's own code did. */
export interface ToolInside {
  readonly sessions?: readonly InsideSession[]
  readonly usage?: Usage
  readonly notes?: readonly ChunkInput[]
}

/** Where a call ran, and what it did to files. */
export interface ToolEvidence {
  /** The id of the session that the answer comes from, in journals written before 0.2. */
  readonly session?: string
  /** The sandbox: backend, id and folder. */
  readonly ranOn?: JsonObject
  /** Tree digests of the workspace when the call began and ended. */
  readonly before?: Digest
  readonly tree?: Digest
  /** Packs of the store that hold these trees, once they were sent there. */
  readonly packs?: readonly Digest[]
  readonly files?: readonly FileChange[]
  /** How many more files it changed than are listed. */
  readonly moreFiles?: number
  readonly drift?: Drift
  /** The files that a resumed run found and put away, to go on from those on record. */
  readonly putAway?: Digest
  /** Why the files could not be kept, when they could not. */
  readonly problem?: string
}

/** What no tool changed since one last looked: a person edited, a watcher wrote. */
export interface Drift {
  readonly from: Digest
  readonly to: Digest
  readonly files: readonly FileChange[]
}
