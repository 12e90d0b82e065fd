import { type Json, toJson } from '../base/json.ts'
import type { Sandbox } from '../sandbox/spec.ts'
import type { ChunkInput, ToolOutcome } from '../session/chunk.ts'
import type { Session } from '../session/session.ts'
import {
  type ApprovalDecision,
  type ApprovalRequest,
  approvalId,
  askedChunk,
  checkDecision,
  decidedChunk,
} from './approval.ts'
import type { Cancellation } from './cancellation.ts'
import { contextFor, neverStarted } from './execute.ts'
import { describeThrown } from './outcome.ts'
import type { AskFiles } from './policy/path-root.ts'
import { checkPolicy, type Policy, type PolicyVerdict } from './policy/policy.ts'
import type { PolicyCall } from './policy/rules.ts'
import { type PreparedCall, prepare } from './prepare.ts'

export interface Permissions {
  readonly session: Session
  readonly signal: AbortSignal
  readonly cancellation: Cancellation
  readonly policy?: Policy | undefined
  readonly files?: AskFiles | undefined
  readonly by?: string | undefined
  sandbox?(): Promise<Sandbox>
  approve?(request: ApprovalRequest): Promise<ApprovalDecision>
}

/** A call that may run, perhaps with other arguments, or the outcome it has instead. Either way with what was decided about it. */
export type Permission =
  | { readonly call: PreparedCall; readonly approvals: readonly ChunkInput[] }
  | {
      readonly call?: undefined
      readonly outcome: ToolOutcome
      readonly approvals: readonly ChunkInput[]
    }

/** What the policy says about the calls of a turn, one after the other in the order asked, since a policy may count them. */
export class Rulings {
  readonly #permissions: Permissions
  readonly #allowed: PolicyCall[] = []
  #last: Promise<unknown> = Promise.resolve()

  constructor(permissions: Permissions) {
    this.#permissions = permissions
  }

  on(call: PreparedCall): Promise<PolicyVerdict> | undefined {
    if (this.#permissions.policy === undefined) return undefined
    const verdict = this.#last.then(async () => {
      const asked = { tool: call.tool.name, args: call.args }
      const given = await this.check(asked)
      if (given.kind !== 'deny') this.#allowed.push(asked)
      return given
    })
    this.#last = verdict
    return verdict
  }

  /** An edited call takes the place of the one asked, so that one is not counted. */
  onEdited(call: PreparedCall, args: Json): Promise<PolicyVerdict> | undefined {
    return this.#permissions.policy && this.check({ tool: call.tool.name, args }, call.args)
  }

  check(asked: PolicyCall, instead?: Json): Promise<PolicyVerdict> {
    const { policy, session, files } = this.#permissions
    const before = this.#allowed.filter(other => other.args !== instead)
    return checkPolicy(policy as Policy, asked, { session, before, files })
  }
}

/** Asks the policy, the tool, and whoever has to be asked. Several questions of one turn are open at once. */
export async function permit(
  call: PreparedCall,
  rulings: Rulings,
  permissions: Permissions,
): Promise<Permission> {
  const { cancellation } = permissions
  const ruling = rulings.on(call)
  const verdict = ruling && (await cancellation.orAborted(ruling))
  if (verdict?.kind === 'deny') return denyByPolicy(call, verdict.reason, [], permissions)
  const asks = call.tool.approval && (await cancellation.orAborted(toolAsks(call, permissions)))
  if (cancellation.isAborted) return { outcome: neverStarted, approvals: [] }
  const question = asks || (verdict?.kind === 'ask' ? verdict.question : undefined)
  return question === undefined ? { call, approvals: [] } : ask(call, question, rulings, permissions)
}

async function ask(
  call: PreparedCall,
  question: string,
  rulings: Rulings,
  permissions: Permissions,
): Promise<Permission> {
  const { session, signal, cancellation, by } = permissions
  const { tool, args } = call
  const approval = approvalId(session, call.index, tool.name, args)
  const request: ApprovalRequest = { approval, call: call.call, tool, args, question, session, signal }
  const asked = askedChunk(request, by)
  if (permissions.approve === undefined) {
    return denyByPolicy(call, `${question} Nobody is there to approve it.`, [asked], permissions)
  }
  const answer = await cancellation.orAborted(permissions.approve(request))
  if (answer === undefined && cancellation.isAborted) return { outcome: neverStarted, approvals: [asked] }
  const decision = checkDecision(answer as ApprovalDecision, request)
  const approvals = [asked, decidedChunk(request, decision, by)]
  if (decision.verdict === 'approved') return { call, approvals }
  if (decision.verdict === 'edited') {
    return edited(call, toJson(decision.edit, 'edit'), approvals, rulings, permissions)
  }
  const unsaid = decision.verdict === 'expired' ? 'Nobody decided in time.' : 'It was not approved.'
  return { outcome: { kind: 'denied', reason: decision.reason ?? unsaid }, approvals }
}

/** An edited call is checked like any other: a person can change what was asked, not what is allowed. */
async function edited(
  call: PreparedCall,
  args: Json,
  approvals: readonly ChunkInput[],
  rulings: Rulings,
  permissions: Permissions,
): Promise<Permission> {
  const verdict = await rulings.onEdited(call, args)
  if (verdict?.kind === 'deny') return denyByPolicy({ ...call, args }, verdict.reason, approvals, permissions)
  const tools = new Map([[call.tool.name, call.tool]])
  const prepared = await prepare({ ...call.call, args }, call.index, tools)
  if ('outcome' in prepared) return { outcome: prepared.outcome, approvals }
  return { call: { ...prepared, call: call.call }, approvals }
}

function denyByPolicy(
  call: PreparedCall,
  reason: string,
  approvals: readonly ChunkInput[],
  { session, by }: Permissions,
): Permission {
  const approval = approvalId(session, call.index, call.tool.name, call.args)
  const decision: ApprovalDecision = { verdict: 'rejected', by: 'policy', reason }
  const chunk = decidedChunk({ ...call, approval }, decision, by)
  return { outcome: { kind: 'denied', reason }, approvals: [...approvals, chunk] }
}

/** Why the tool itself wants a person to look, if it does. A check that fails is a reason to look. */
async function toolAsks(
  { tool, args, call }: PreparedCall,
  { session, sandbox }: Permissions,
): Promise<string | undefined> {
  try {
    const { context } = contextFor({ session, sandbox, callId: call.id }, () => false)
    const asks =
      tool.approval === true || (typeof tool.approval === 'function' && (await tool.approval(args, context)))
    return asks ? `${tool.name} asks for approval.` : undefined
  } catch (error) {
    return `${tool.name} could not say whether it needs approval (${describeThrown(error)}).`
  }
}
