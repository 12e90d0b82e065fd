import { digestOf } from '../../base/digest.ts'
import { RathError, show } from '../../base/errors.ts'
import { isPlainObject, type Json, type JsonObject, refuse, toJson } from '../../base/json.ts'
import type { JournalEntry, RunRow, Store } from '../../store/spec.ts'
import { type ApprovalDecision, checkDecision } from '../../tool/approval.ts'
import { compileSchema } from '../../tool/json-schema.ts'
import { type ApprovalFacts, type AskedRecord, askedIn, definition } from '../entry.ts'
import type { OpenApproval } from '../run.ts'

export interface ApprovalAnswer extends Omit<ApprovalDecision, 'verdict'> {
  readonly verdict: Exclude<ApprovalDecision['verdict'], 'expired'>
  /** The digest that was shown with the arguments; a decision about other ones is refused. */
  readonly digest?: string
}

/** Answers a question of a parked run, from any process. The run goes on when it is resumed. */
export async function decideApproval(
  run: string,
  approval: string,
  answered: ApprovalAnswer,
  store: Store,
): Promise<void> {
  const { digest, ...decision } = answered ?? {}
  const row = await store.runs.get(run)
  const entries = await store.runs.journal(run)
  const asked = entries.filter(entry => entry.kind === 'approval' && askedOf(entry).id === approval)
  const open = asked.find(entry => isAsked(entry, row))
  if (open === undefined) throw notOpen(row, approval, asked.at(-1), await openApprovals(run, store))
  const facts = factsIn(open)
  const { tool } = askedOf(open).request
  if (isExpired(open)) {
    throw new RathError(
      'unknown-approval',
      `The approval ${approval} of run ${run} ended at ${new Date(facts.until as number).toISOString()}; a resumed run goes on as if nobody had decided.`,
    )
  }
  if (digest !== undefined && digest !== facts.digest) {
    throw new RathError(
      'invalid-argument',
      `This decision is about other arguments than run ${run} asked about: its digest is ${digest}, that of the arguments is ${facts.digest}. Look at them again.`,
    )
  }
  const { verdict, by, reason, edit, answer } = checkDecision(decision, tool)
  if (verdict === 'edited') {
    const schema = entries.find(({ kind, key }) => kind === definition && key === facts.schema)
    if (schema) refuseUnfit(toJson(edit, 'edit'), tool, schema.request as JsonObject)
  }
  const given = { verdict, by, reason, edit, answer, at: Date.now() }
  const value = Object.fromEntries(Object.entries(given).filter(([, field]) => field !== undefined))
  await store.runs.decide(run, open.key, open.occurrence, { value: toJson(value, 'decision') } as Json)
}

/** As far as the JSON Schema on record can tell: whoever decides may not have the tool. */
function refuseUnfit(edit: Json, tool: string, schema: JsonObject): void {
  const problems = isPlainObject(edit)
    ? compileSchema(schema)(edit, 'edit')
    : [{ path: 'edit', message: `must be an object, not ${show(edit)}` }]
  refuse('invalid-argument', `The edit does not fit ${tool}, and nothing was decided`, problems)
}

function notOpen(
  { id: run, status }: RunRow,
  approval: string,
  decided: JournalEntry | undefined,
  open: readonly OpenApproval[],
): RathError {
  const unanswered = `is not open: the run is ${status}${status === 'waiting' ? ' for something else' : ', and asks again if it is resumed and comes to it'}`
  const why = decided
    ? decided.outcome === undefined
      ? unanswered
      : 'is decided already'
    : 'was never asked'
  return new RathError(
    'unknown-approval',
    `The approval ${show(approval)} of run ${run} ${why}; open are ${open.map(({ approval }) => approval).join(', ') || 'none'}.`,
  )
}

/** What the entry of an approval says. */
function askedOf(entry: JournalEntry): AskedRecord<'approval'> {
  return askedIn(entry, 'approval') as AskedRecord<'approval'>
}

export function factsIn(entry: JournalEntry): ApprovalFacts {
  return askedOf(entry).facts as ApprovalFacts
}

/** The questions of a run that somebody can still answer, in the order asked. */
export async function openApprovals(run: string, store: Store): Promise<OpenApproval[]> {
  return (await unanswered(run, store)).filter(entry => !isExpired(entry)).map(approvalIn)
}

/** Those whose time is over. The run goes on without an answer when it is resumed. */
export async function expiredApprovals(run: string, store: Store): Promise<OpenApproval[]> {
  return (await unanswered(run, store)).filter(isExpired).map(approvalIn)
}

async function unanswered(run: string, store: Store): Promise<JournalEntry[]> {
  const row = await store.runs.get(run)
  return (await store.runs.journal(run)).filter(entry => isAsked(entry, row))
}

/** Whether a run waits for the answer to a question. One that was cancelled, or lost a race, is asked again if the run comes to it again. */
function isAsked(entry: JournalEntry, { status, data }: RunRow): boolean {
  if (entry.kind !== 'approval' || entry.outcome !== undefined || isOver(status)) return false
  const { asks } = data
  return !Array.isArray(asks) || asks.includes(askedIn(entry).id as string)
}

function isExpired(entry: JournalEntry): boolean {
  const { until } = factsIn(entry)
  return until !== undefined && until <= Date.now()
}

function isOver(status: RunRow['status']): boolean {
  return status === 'done' || status === 'failed' || status === 'cancelled'
}

/** A question as its entry keeps it. */
export function approvalIn(entry: JournalEntry): OpenApproval {
  const { id, request } = askedOf(entry)
  const { tool, args } = request
  const { question, digest, until, builtin } = factsIn(entry)
  return {
    approval: id as string,
    tool,
    args,
    question,
    digest,
    ...(builtin && { builtin }),
    ...(until !== undefined && { until }),
  }
}

/** What a decision is bound to. */
export function argumentsDigest(tool: string, args: Json): string {
  return digestOf([tool, args])
}
