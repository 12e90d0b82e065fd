import type { Json } from '../base/json.ts'
import type { Sandbox } from '../sandbox/spec.ts'
import type { ChunkInput, ToolOutcome } from '../session/chunk.ts'
import type { ToolCallPart } from '../session/part.ts'
import type { Session } from '../session/session.ts'
import type { ApprovalDecision, ApprovalRequest, GivenDecision } from './approval.ts'
import type { AskFiles } from './policy/path-root.ts'
import type { Policy } from './policy/policy.ts'
import type { PreparedCall } from './prepare.ts'
import type { Tool } from './spec.ts'
import type { ToolRecord } from './tool-record.ts'

/**
 * One turn of a model, as `dispatchCalls` sees it: what its calls work in, who decides about them, and where their results go. The agent
 * loop is one implementation. What it leaves out has a plain answer: nobody approves, nothing is on record, nobody watches.
 */
export interface Turn {
  readonly tools: ReadonlyMap<string, Tool>
  /** As it was when the model asked. */
  readonly session: Session
  /** Cancels the turn: what runs is told to stop, and every call that has no outcome yet ends as `cancelled`. */
  readonly signal: AbortSignal
  readonly policy?: Policy | undefined
  /** How many calls run at a time; 8 by default. */
  readonly limit?: number
  /** Producer path, for approval chunks. */
  readonly by?: string | undefined
  /** Part of every approval's id, where the same may be asked from equal sessions side by side. */
  readonly sample?: string | undefined
  /** Where path rules of the policy look; by default the local file system, from the folder that the session is placed in. */
  readonly files?: AskFiles | undefined
  /** Opens the sandbox of the session, or gives the one that is open. Called only when a tool asks for it. */
  sandbox?(): Promise<Sandbox>
  /** Wraps what the policy and the tool say about a call: they may look at files, and what they said may be on record. */
  ruled?(call: PreparedCall, rule: () => Promise<Ruling>): Promise<Ruling>
  /** Asks a person. Without it, a call that needs approval is denied. */
  approve?(request: ApprovalRequest): Promise<ApprovalDecision | GivenDecision>
  /** A call is about to run. An approver may have edited its arguments. */
  onStart?(call: PreparedCall): void
  /**
   * Wraps every execution: the effect, whose outcome may be on record. `run` takes another way to open the sandbox, and rejects only with
   * what stops the run itself.
   */
  around?(call: PreparedCall, run: RunTool): Promise<ToolRecord>
  onProgress?(callId: string, data: Json): void
  /** Called strictly in the order asked, each as soon as all before it are done; the next one waits until this returns. */
  onResult(record: CallRecord): Promise<unknown> | undefined
}

export type RunTool = (sandbox?: () => Promise<Sandbox>) => Promise<ToolOutcome>

/** What becomes of a call before anybody is asked: denied for a reason, to be asked about, or neither. */
export interface Ruling {
  readonly deny?: string
  readonly ask?: string
}

/** A call that has its outcome. */
export interface CallRecord {
  readonly call: ToolCallPart
  /** As they ran; an approver may have edited them. */
  readonly args: Json
  readonly outcome: ToolOutcome
  /** How long the tool ran; 0 when it did not. */
  readonly durationMs: number
  /** Where it ran and what it did to files, if `around` has it. */
  readonly evidence?: ToolRecord['evidence'] | undefined
  /** When it ended and what was done inside it, if `around` has it. */
  readonly at?: number | undefined
  readonly inside?: ToolRecord['inside'] | undefined
  /** Chunks of kind `approval`: what was asked and what was decided. */
  readonly approvals: readonly ChunkInput[]
}
