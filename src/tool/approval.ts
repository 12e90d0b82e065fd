import { now } from '../base/clock.ts'
import { digestOf } from '../base/digest.ts'
import { RathError, show } from '../base/errors.ts'
import { isPlainObject, type Json } from '../base/json.ts'
import type { ChunkInput } from '../session/chunk.ts'
import type { ToolCallPart } from '../session/part.ts'
import type { Session } from '../session/session.ts'
import type { Tool } from './spec.ts'
import { ArgumentError } from './tool-error.ts'

/** A call that waits for a person. */
export interface ApprovalRequest {
  /** The same for the same call asked from the same state, so that a resumed run finds the decision again. */
  readonly approval: string
  readonly call: ToolCallPart
  readonly tool: Tool
  readonly args: Json
  /** Why it is asked. */
  readonly question: string
  readonly session: Session
  /** Aborted when the run is cancelled: nobody needs to answer any more. */
  readonly signal: AbortSignal
}

export interface ApprovalDecision {
  /**
   * `edited` runs the call with the arguments in `edit`; `answered` takes `answer` for its result and does not run it; `expired` says
   * that nobody decided in time.
   */
  readonly verdict: 'approved' | 'rejected' | 'edited' | 'answered' | 'expired'
  /** Who decided. */
  readonly by?: string
  readonly reason?: string
  readonly edit?: Json
  readonly answer?: Json
  /** When it was decided, in milliseconds since the epoch; now by default. */
  readonly at?: number
}

/** A decision as it came from outside, checked. */
export function checkDecision(decision: ApprovalDecision, tool: string): ApprovalDecision {
  const { verdict, edit, answer, by, reason, at } = decision ?? {}
  const refuse = (what: string) => {
    throw new RathError('invalid-argument', `The decision about ${tool} ${what}`)
  }
  if (!verdicts.includes(verdict)) {
    refuse(`has the verdict ${show(verdict)}; it must be approved, rejected, edited, answered or expired.`)
  }
  if (verdict === 'edited' && edit === undefined) {
    refuse('is edited but has no edit; give the arguments to run with.')
  }
  if (verdict === 'answered' && answer === undefined) {
    refuse('is answered but has no answer; give the result to go on with.')
  }
  if (by !== undefined && (typeof by !== 'string' || by === '')) {
    refuse(`is by ${show(by)}; \`by\` is the name of who decided, or left out.`)
  }
  if (reason !== undefined && typeof reason !== 'string')
    refuse(`has the reason ${show(reason)}; it is text.`)
  if (at !== undefined && !Number.isFinite(at)) {
    refuse(`was made at ${show(at)}; \`at\` is milliseconds since the epoch.`)
  }
  return decision
}

/** What is wrong with arguments that a person wrote for a tool; nothing when they fit. */
export async function editProblem(tool: Tool, edit: Json): Promise<string | undefined> {
  if (!isPlainObject(edit)) return `the arguments must be an object, not ${show(edit)}.`
  try {
    await tool.parse(edit)
    return undefined
  } catch (error) {
    if (!(error instanceof ArgumentError)) return error instanceof Error ? error.message : show(error)
    return error.problems.map(({ path, message }) => `${path}: ${message}`).join('; ')
  }
}

const verdicts: readonly unknown[] = ['approved', 'rejected', 'edited', 'answered', 'expired']

/** `place` tells equal calls of one turn apart; the ids that providers invent do not count. */
export function approvalId(session: Session, place: number, tool: string, args: Json, sample = ''): string {
  return digestOf(['approval', session.state, place, tool, args, ...(sample ? [sample] : [])]).slice(0, 32)
}

/** A decision, and the id that the question had where it was recorded. */
export interface GivenDecision {
  readonly approval?: string
  readonly decision: ApprovalDecision
}

export function askedChunk(request: ApprovalRequest, by: string | undefined): ChunkInput {
  const { approval, call, tool, args, question } = request
  return {
    kind: 'approval',
    at: now(),
    approval,
    callId: call.id,
    tool: tool.name,
    args,
    question,
    ...(by !== undefined && { by }),
  }
}

export function decidedChunk(
  { approval, call, tool, args }: Pick<ApprovalRequest, 'approval' | 'call' | 'tool' | 'args'>,
  { verdict, by: decidedBy, reason, edit, answer, at }: ApprovalDecision,
  by: string | undefined,
): ChunkInput {
  return {
    kind: 'approval',
    approval,
    callId: call.id,
    tool: tool.name,
    args: verdict === 'edited' ? (edit as Json) : args,
    verdict,
    ...(decidedBy !== undefined && { decidedBy }),
    ...(reason !== undefined && { reason }),
    ...(answer !== undefined && { answer }),
    ...(at !== undefined && { at }),
    ...(by !== undefined && { by }),
  }
}
