import { digestOf } from '../../base/digest.ts'
import type { Json } from '../../base/json.ts'
import type { JournalEntry, RunRow, Store } from '../../store/spec.ts'
import { askedIn } from '../entry.ts'
import type { OpenApproval } from '../run.ts'

/** What an approval's entry says besides its request. */
export interface ApprovalFacts {
  readonly question: string
  /** Of the tool's name and all of its arguments. */
  readonly digest: string
  readonly until?: number
  /** The tool is one that comes with the package, not one with its name. */
  readonly builtin?: boolean
  /** Digest of the JSON Schema of the tool's arguments, which the journal defines. */
  readonly schema?: string
}

export function factsIn(entry: JournalEntry): ApprovalFacts {
  return askedIn(entry).facts as unknown as ApprovalFacts
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
  const { id, request } = askedIn(entry)
  const { tool, args } = request as unknown as { tool: string; args: Json }
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
