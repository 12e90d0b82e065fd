import { RathError, show } from '../base/errors.ts'
import { type Json, toJson } from '../base/json.ts'
import type { JournalEntry, Store } from '../store/spec.ts'
import { type ApprovalDecision, checkDecision } from '../tool/approval.ts'
import { factsIn, openApprovals } from './approval-facts.ts'
import { askedIn } from './entry.ts'
import type { OpenApproval } from './run.ts'

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
  const asked = (await store.runs.journal(run)).filter(
    entry => entry.kind === 'approval' && askedIn(entry).id === approval,
  )
  const open = asked.find(entry => entry.outcome === undefined)
  if (open === undefined) throw notOpen(run, approval, asked.at(-1), await openApprovals(run, store))
  const { request } = askedIn(open)
  const facts = factsIn(open)
  const { tool } = request as unknown as { tool: string }
  if (facts.until !== undefined && facts.until <= Date.now()) {
    throw new RathError(
      'unknown-approval',
      `The approval ${approval} of run ${run} ended at ${new Date(facts.until).toISOString()}; a resumed run goes on as if nobody had decided.`,
    )
  }
  if (digest !== undefined && digest !== facts.digest) {
    throw new RathError(
      'invalid-argument',
      `This decision is about other arguments than run ${run} asked about: its digest is ${digest}, that of the arguments is ${facts.digest}. Look at them again.`,
    )
  }
  const { verdict, by, reason, edit, answer } = checkDecision(decision, tool)
  const given = { verdict, by, reason, edit, answer, at: Date.now() }
  const value = Object.fromEntries(Object.entries(given).filter(([, field]) => field !== undefined))
  await store.runs.decide(run, open.key, open.occurrence, { value: toJson(value, 'decision') } as Json)
}

function notOpen(
  run: string,
  approval: string,
  decided: JournalEntry | undefined,
  open: readonly OpenApproval[],
): RathError {
  const why = decided ? 'is decided already' : 'was never asked'
  return new RathError(
    'unknown-approval',
    `The approval ${show(approval)} of run ${run} ${why}; open are ${open.map(({ approval }) => approval).join(', ') || 'none'}.`,
  )
}
