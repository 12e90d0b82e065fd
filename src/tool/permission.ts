import { canonicalJson, isJson, isPlainObject, type Json, toJson } from '../base/json.ts'
import type { ChunkInput, ToolOutcome } from '../session/chunk.ts'
import {
  type ApprovalDecision,
  type ApprovalRequest,
  approvalId,
  askedChunk,
  checkDecision,
  decidedChunk,
} from './approval.ts'
import { type Cancellation, neverStarted, RunningCall } from './execute.ts'
import { describeThrown, outcomeOf } from './outcome.ts'
import { checkFiles, checkPolicy, type Policy, type PolicyVerdict } from './policy/policy.ts'
import type { PolicyCall } from './policy/rules.ts'
import { type PreparedCall, prepare } from './prepare.ts'
import type { Ruling, Turn } from './turn.ts'

/** Who decides about the calls of a turn. */
export interface Permissions {
  readonly turn: Turn
  readonly cancellation: Cancellation
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
  readonly permissions: Permissions
  readonly #allowed: PolicyCall[] = []
  #last: Promise<unknown> = Promise.resolve()

  constructor(permissions: Permissions) {
    this.permissions = permissions
  }

  /** The ruling on a call, made now or on record. A policy counts those before it in either case, so it waits for them. */
  on(call: PreparedCall, rule: () => Promise<Ruling>): Promise<Ruling> {
    if (this.permissions.turn.policy === undefined) return ruledOn(call, rule, this.permissions)
    const ruling = this.#last.then(async () => {
      const given = await ruledOn(call, rule, this.permissions)
      if (given.deny === undefined) this.#allowed.push({ tool: call.tool.name, args: call.args })
      return given
    })
    this.#last = ruling
    return ruling
  }

  async check(call: PreparedCall): Promise<PolicyVerdict | undefined> {
    return this.permissions.turn.policy && this.#check(call)
  }

  /** An edited call takes the place of the one asked, so that one is not counted. */
  onEdited(call: PreparedCall, instead: Json): Promise<PolicyVerdict> | undefined {
    return this.permissions.turn.policy && this.#check(call, instead)
  }

  async #check({ tool, args: written, parsed }: PreparedCall, instead?: Json): Promise<PolicyVerdict> {
    const { policy, session, files } = this.permissions.turn
    const before = this.#allowed.filter(other => other.args !== instead)
    let verdict: PolicyVerdict = { kind: 'allow' }
    for (const args of seenArguments(written, parsed)) {
      const given = await checkPolicy(policy as Policy, { tool: tool.name, args }, { session, before, files })
      if (given.kind === 'deny') return given
      if (verdict.kind === 'allow') verdict = given
    }
    return verdict
  }
}

/** Why a call that was let through may not run after all: a call before it, or somebody while it waited, may have changed where its paths lead. */
export async function refusedByNow(
  { tool, args: written, parsed }: PreparedCall,
  { turn: { policy, session, files } }: Permissions,
): Promise<ToolOutcome | undefined> {
  if (policy === undefined) return undefined
  for (const args of seenArguments(written, parsed)) {
    const reason = await checkFiles(policy, { tool: tool.name, args }, { session, files })
    if (reason !== undefined) return { kind: 'denied', reason }
  }
  return undefined
}

/** Asks the policy, the tool, and whoever has to be asked. Several questions of one turn are open at once. */
export async function permit(call: PreparedCall, rulings: Rulings): Promise<Permission> {
  const { permissions } = rulings
  const { cancellation } = permissions
  const rule = async (): Promise<Ruling> => {
    const given = await rulings.check(call)
    if (given?.kind === 'deny') return { deny: given.reason }
    const asks = call.tool.approval && (await toolAsks(call, permissions))
    const question = asks || (given?.kind === 'ask' ? given.question : undefined)
    return question === undefined ? {} : { ask: question }
  }
  const ruling = await cancellation.orAborted(rulings.on(call, rule))
  if (ruling?.deny !== undefined) return denyByPolicy(call, ruling.deny, [], permissions)
  if (ruling === undefined || cancellation.isAborted) return { outcome: neverStarted, approvals: [] }
  return ruling.ask === undefined ? { call, approvals: [] } : ask(call, ruling.ask, rulings, permissions)
}

function ruledOn(call: PreparedCall, rule: () => Promise<Ruling>, { turn }: Permissions): Promise<Ruling> {
  const isFixed = turn.policy === undefined && typeof call.tool.approval !== 'function'
  return turn.ruled && !isFixed ? turn.ruled(call, rule) : rule()
}

async function ask(
  call: PreparedCall,
  question: string,
  rulings: Rulings,
  permissions: Permissions,
): Promise<Permission> {
  const { turn, cancellation } = permissions
  const { session, signal, by, sample } = turn
  const { tool, args } = call
  const approval = approvalId(session, call.index, tool.name, args, sample)
  const request: ApprovalRequest = { approval, call: call.call, tool, args, question, session, signal }
  const asked = askedChunk(request, by)
  if (turn.approve === undefined) {
    return denyByPolicy(call, `${question} Nobody is there to approve it.`, [asked], permissions)
  }
  const answer = await cancellation.orAborted(turn.approve(request))
  if (answer === undefined && cancellation.isAborted) return { outcome: neverStarted, approvals: [asked] }
  const given = answer && 'decision' in answer ? answer : { decision: answer as ApprovalDecision }
  const decision = checkDecision(given.decision, tool.name)
  const known = given.approval === undefined ? request : { ...request, approval: given.approval }
  // Asked when it was asked, under the id that it was first asked with.
  const approvals = [
    { ...askedChunk(known, by), at: asked.at },
    decidedChunk(known, decision, by),
  ] as ChunkInput[]
  if (decision.verdict === 'approved') return { call, approvals }
  if (decision.verdict === 'edited') {
    return edited(call, toJson(decision.edit, 'edit'), approvals, rulings, permissions)
  }
  if (decision.verdict === 'answered') return { outcome: outcomeOf(decision.answer, tool.name), approvals }
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
  const tools = new Map([[call.tool.name, call.tool]])
  const prepared = await prepare({ ...call.call, args }, call.index, tools)
  if ('outcome' in prepared) return { outcome: prepared.outcome, approvals }
  const other = { ...prepared, call: call.call }
  const rule = async (): Promise<Ruling> => {
    const verdict = await rulings.onEdited(other, call.args)
    return verdict?.kind === 'deny' ? { deny: verdict.reason } : {}
  }
  const { deny } = await ruledOn(other, rule, permissions)
  return deny === undefined ? { call: other, approvals } : denyByPolicy(other, deny, approvals, permissions)
}

export function denyByPolicy(
  call: PreparedCall,
  reason: string,
  approvals: readonly ChunkInput[],
  { turn: { session, by, sample } }: Permissions,
): Permission {
  const approval = approvalId(session, call.index, call.tool.name, call.args, sample)
  const decision: ApprovalDecision = { verdict: 'rejected', by: 'policy', reason }
  const chunk = decidedChunk({ ...call, approval }, decision, by)
  return { outcome: { kind: 'denied', reason }, approvals: [...approvals, chunk] }
}

/** Why the tool itself wants a person to look, if it does. A check that fails is a reason to look. */
async function toolAsks(
  { tool, args, call }: PreparedCall,
  { turn, cancellation }: Permissions,
): Promise<string | undefined> {
  const context = new RunningCall(call.id, turn)
  const forget = cancellation.follow(() => context.abort(cancellation.reason))
  try {
    const asks =
      tool.approval === true || (typeof tool.approval === 'function' && (await tool.approval(args, context)))
    return asks ? `${tool.name} asks for approval.` : undefined
  } catch (error) {
    return `${tool.name} could not say whether it needs approval (${describeThrown(error)}).`
  } finally {
    forget()
  }
}

/**
 * What a policy has to look at: the arguments as they were written, and as they will run where the tool's schema makes others of them
 * (defaults filled in, text trimmed). A rule that sees only one of the two can be walked around.
 */
function seenArguments(written: Json, parsed: unknown): readonly Json[] {
  if (parsed === written) return [written]
  const made = over(written, parsed, 0)
  return canonicalJson(made) === canonicalJson(written) ? [written] : [written, made]
}

/** What a schema passed on is not looked for deeper than this. */
const maximumDepth = 64

/** `made` where that is JSON, else what was written in its place. */
function over(written: Json | undefined, made: unknown, depth: number): Json {
  if (depth > maximumDepth) return written ?? null
  if (Array.isArray(made)) return made.map((member, i) => over(memberOf(written, i), member, depth + 1))
  if (!isPlainObject(made)) return isJson(made) ? made : (written ?? null)
  const both = Object.assign(Object.create(null), isPlainObject(written) ? written : {})
  for (const key of Object.keys(made)) {
    if (made[key] !== undefined) both[key] = over(memberOf(written, key), made[key], depth + 1)
  }
  return both
}

function memberOf(written: Json | undefined, key: string | number): Json | undefined {
  const holds = typeof written === 'object' && written !== null && Object.hasOwn(written, key)
  return holds ? (written as Record<string | number, Json>)[key] : undefined
}
