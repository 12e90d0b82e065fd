import { onAbort } from '../../base/abort.ts'
import { digestOf } from '../../base/digest.ts'
import { RathError } from '../../base/errors.ts'
import { canonicalJson, type Json } from '../../base/json.ts'
import { longestTimer } from '../../base/time.ts'
import type { ChunkInput } from '../../session/chunk.ts'
import type { Session } from '../../session/session.ts'
import {
  type ApprovalDecision,
  type ApprovalRequest,
  askedChunk,
  checkDecision,
  editProblem,
  type GivenDecision,
} from '../../tool/approval.ts'
import { isBuiltinTool } from '../../tool/builtin/builtin-tools.ts'
import { emit, type RunContext } from '../context.ts'
import { effect, valueIn } from '../effect.ts'
import { askedIn, cleanDigest, type EntryName, type Lending, type Outcome, stateIn } from '../entry.ts'
import { scopeIn } from '../frame.ts'
import { approvalsIn, type OpenApproval } from '../run.ts'
import { argumentsDigest, factsIn } from './decide.ts'

/** The questions of one turn to people. */
export class Questions {
  readonly #context: RunContext
  readonly #asking = new Set<Promise<GivenDecision>>()
  /** Those that nobody has answered, as chunks. */
  readonly open: ChunkInput[] = []

  constructor(context: RunContext) {
    this.#context = context
  }

  /** `place` is that of the call in its turn. */
  ask(request: ApprovalRequest, place: number): Promise<GivenDecision> {
    const asking = askPerson(request, place, this.#context).catch(error => {
      for (const { approval } of waitingFor(error))
        this.open.push(askedChunk({ ...request, approval }, this.#context.by))
      throw error
    })
    this.#asking.add(asking)
    return asking
  }

  /** Nobody is there for one of them: the others are about to find that out, and belong on the record with the first. */
  async settle(error: unknown): Promise<void> {
    if (waitingFor(error).length > 0) await Promise.allSettled(this.#asking)
  }
}

/** What an error that parks a run waits for; nothing for any other. */
function waitingFor(error: unknown): readonly OpenApproval[] {
  return error instanceof RathError && error.code === 'run-waiting' ? approvalsIn(error) : []
}

/**
 * Asks a person through the door: a decision on record, the handler of the call, or nobody yet: then the run is parked, and this rejects
 * with `run-waiting`.
 */
async function askPerson(
  request: ApprovalRequest,
  place: number,
  context: RunContext,
): Promise<GivenDecision> {
  const { tool, session } = request
  const store = await context.runtime.store
  // As anybody else is shown them; only the handler of this call sees what will be done to the letter.
  const [args, question] = [store.clean(request.args), store.clean(request.question)]
  const digest = argumentsDigest(tool.name, args)
  const { approveWithin = Infinity, run } = context
  const { sample } = scopeIn(context)
  const until = approveWithin === Infinity ? undefined : Date.now() + approveWithin
  // Whoever decides elsewhere has no tool to check an edit with.
  const schema = cleanDigest(tool.parameters, store)
  run.door.define(schema, () => tool.parameters)
  const builtin = isBuiltinTool(tool) ? { builtin: true } : {}
  // By the first rule equal askers had other states, and so other ids.
  const idOf = (at: EntryName) =>
    run.door.rule === 1
      ? firstApprovalId(request, place, sample)
      : digestOf(['approval', at.key, at.occurrence]).slice(0, 32)
  let approval = request.approval
  const passed = await effect(
    context,
    {
      kind: 'approval',
      session,
      request: { tool: tool.name, args, place },
      rule: 'read',
      id: idOf,
      facts: { question, digest, schema, ...builtin, ...(until !== undefined && { until }) },
      anybody: true,
      borrow: async (outcome, lender) =>
        isUsedUp(outcome, { session, tool: tool.name, args, place }, lender) ? outcome : undefined,
    },
    async at => {
      const { begun } = at
      approval = (begun && askedIn(begun).id) ?? idOf(at)
      // One that was asked before ends when it was said to end.
      const end = begun ? factsIn(begun).until : until
      const open = {
        approval,
        tool: tool.name,
        args,
        question,
        digest,
        ...builtin,
        ...(end !== undefined && { until: end }),
      }
      return { value: await answer(open, { ...request, approval }, context) }
    },
  )
  return { decision: valueIn(passed), approval: passed.id ?? approval }
}

function firstApprovalId({ tool, args, session }: ApprovalRequest, place: number, sample: string): string {
  const state = stateIn(session, 1)
  return digestOf(['approval', state, place, tool.name, args, ...(sample ? [sample] : [])]).slice(0, 32)
}

/**
 * A decision is borrowed only together with what came of it: nobody's word in one run lets a tool run in another.
 */
function isUsedUp(
  { value }: Outcome<'approval'>,
  { session, tool, args, place }: { session: Session; tool: string; args: Json; place: number },
  { entries, rule }: Lending,
): boolean {
  if (value === undefined) return false
  const { verdict, edit } = value
  if (verdict === 'rejected' || verdict === 'answered') return true
  const ran = canonicalJson([tool, verdict === 'edited' ? (edit as Json) : args, place])
  return entries.some(entry => {
    const asked = askedIn(entry, 'tool')
    if (asked === undefined || entry.outcome === undefined) return false
    const { request, state } = asked
    return (
      state === stateIn(session, rule) && canonicalJson([request.tool, request.args, request.place]) === ran
    )
  })
}

async function answer(
  open: OpenApproval,
  request: ApprovalRequest,
  context: RunContext,
): Promise<ApprovalDecision> {
  const left = open.until === undefined ? Infinity : open.until - Date.now()
  if (left <= 0) return expired
  const { approval, tool, args, question } = open
  emit(context, { type: 'approval-request', approval, callId: request.call.id, tool, args, question })
  if (context.approve === undefined) throw context.run.park(open)
  const decision = Promise.resolve(context.approve(request))
  const decided = await (left === Infinity ? decision : orExpired(decision, left, request.signal))
  const checked = checkDecision(decided, tool)
  const problem = checked.verdict === 'edited' && (await editProblem(request.tool, checked.edit as Json))
  if (problem) throw new RathError('invalid-argument', `The edit of ${tool} does not fit it: ${problem}`)
  return { at: Date.now(), ...checked }
}

const expired: ApprovalDecision = Object.freeze({ verdict: 'expired' })

function orExpired(
  decision: Promise<ApprovalDecision>,
  ms: number,
  signal: AbortSignal,
): Promise<ApprovalDecision> {
  return new Promise((resolve, reject) => {
    const timer = ms > longestTimer ? undefined : setTimeout(resolve, ms, expired)
    // A run that was cancelled waits for nobody; its handler may never answer.
    const link = onAbort(signal, () => clearTimeout(timer))
    decision.then(resolve, reject).finally(() => {
      clearTimeout(timer)
      link[Symbol.dispose]()
    })
  })
}
