import { digestOf } from '../../base/digest.ts'
import type { Json } from '../../base/json.ts'
import type { JournalEntry, RunRow, Store } from '../../store/spec.ts'
import { type ApprovalFacts, type AskedRecord, askedIn } from '../entry.ts'
import type { OpenApproval } from '../run.ts'

/** What the entry of an approval says. */
export function askedOf(entry: JournalEntry): AskedRecord<'approval'> {
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
export function isAsked(entry: JournalEntry, { status, data }: RunRow): boolean {
  if (entry.kind !== 'approval' || entry.outcome !== undefined || isOver(status)) return false
  const { asks } = data
  return !Array.isArray(asks) || asks.includes(askedIn(entry).id as string)
}

export function isExpired(entry: JournalEntry): boolean {
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
