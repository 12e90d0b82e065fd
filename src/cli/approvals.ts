import { approvalIn } from '../run/approval-facts.ts'
import type { OpenApproval } from '../run/run.ts'
import type { Store } from '../store/spec.ts'

/** The questions of a run that nobody has answered, in the order asked. */
export async function openApprovals(run: string, store: Store): Promise<OpenApproval[]> {
  const entries = await store.runs.journal(run)
  return entries.filter(entry => entry.kind === 'approval' && entry.outcome === undefined).map(approvalIn)
}
