import { RathError, show } from '../../base/errors.ts'
import { isPlainObject, type Json, type JsonObject, refuse, toJson } from '../../base/json.ts'
import type { JournalEntry, RunRow, Store } from '../../store/spec.ts'
import { type ApprovalDecision, checkDecision } from '../../tool/approval.ts'
import { compileSchema } from '../../tool/json-schema.ts'
import { definition } from '../entry.ts'
import type { OpenApproval } from '../run.ts'
import { askedOf, factsIn, isAsked, isExpired, openApprovals } from './approval-facts.ts'

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
