import { digestOf } from '../base/digest.ts'
import type { Json } from '../base/json.ts'
import type { JournalEntry, Store } from '../store/spec.ts'
import { askedIn } from './entry.ts'
import type { OpenApproval } from './run.ts'

/** What an approval's entry says besides its request. */
export interface ApprovalFacts {
  readonly question: string
  /** Of the arguments as they were shown. */
  readonly digest: string
  readonly until?: number
}

export function factsIn(entry: JournalEntry): ApprovalFacts {
  return askedIn(entry).facts as unknown as ApprovalFacts
}

/** The questions of a run that nobody has answered, in the order asked. */
export async function openApprovals(run: string, store: Store): Promise<OpenApproval[]> {
  const entries = await store.runs.journal(run)
  return entries.filter(entry => entry.kind === 'approval' && entry.outcome === undefined).map(approvalIn)
}

/** A question as its entry keeps it. */
export function approvalIn(entry: JournalEntry): OpenApproval {
  const { id, request } = askedIn(entry)
  const { tool, args } = request as unknown as { tool: string; args: Json }
  return { approval: id as string, tool, args, ...factsIn(entry) }
}

/** What a decision is bound to. */
export function argumentsDigest(tool: string, args: Json): string {
  return digestOf([tool, args])
}
