import type { Digest } from '../base/digest.ts'
import type { ToolEvidence, ToolRecord } from '../tool/tool-record.ts'
import { askedIn, outcomeIn } from './entry.ts'
import type { RunRecord } from './record.ts'

/** The calls of one answer: made from one state, by one agent. */
export interface TurnName {
  readonly state: Digest
  readonly by: string
  readonly sample: string
}

/**
 * The last of the calls of this turn that are on record, with the files as they left them; undefined when none of them tells. The session does not know of them yet:
 * it is told of all results of a turn when the turn has ended. `from` are the files that it knows.
 */
export function filesAfterTurn(
  record: RunRecord,
  { state, by, sample }: TurnName,
  from: Digest | undefined,
): ToolEvidence | undefined {
  const steps = record.effects().flatMap(entry => {
    const asked = askedIn(entry)
    const isOfTurn = asked.state === state && asked.by === by && (asked.sample ?? '') === sample
    const value = outcomeIn(entry)?.value as unknown as ToolRecord | undefined
    const evidence = entry.kind === 'tool' && isOfTurn ? value?.evidence : undefined
    return evidence?.tree === undefined ? [] : [evidence]
  })
  // Calls side by side end in any order: each begins with the files that the one before it left.
  let last: ToolEvidence | undefined
  while (steps.length > 0) {
    const tree = last?.tree ?? from
    const next = Math.max(
      0,
      steps.findIndex(step => step.before === tree),
    )
    last = steps.splice(next, 1)[0]
  }
  return last?.tree === from ? undefined : last
}

/** Whether something was cut off that changes files, so that they may be half-written. */
export function wasCutOff(record: RunRecord): boolean {
  return record.effects().some(entry => {
    const { rule, facts } = askedIn(entry)
    return entry.outcome === undefined && (rule === 'workspace' || facts?.sandboxed === true)
  })
}
