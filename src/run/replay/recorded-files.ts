import type { Digest } from '../../base/digest.ts'
import { foldAt } from '../../session/chain.ts'
import { type Session, valueFrom } from '../../session/session.ts'
import type { JournalEntry, Store } from '../../store/spec.ts'
import type { ToolEvidence } from '../../tool/tool-record.ts'
import { type Asker, askedIn, outcomeIn, stateIn } from '../entry.ts'
import type { RunRecord } from './record.ts'

/** The calls of one answer: made from one state, by one agent. */
export interface TurnName {
  readonly session: Session
  readonly asker: Asker
}

/**
 * The last of the calls of this turn that are on record, with the files as they left them; undefined when none of them tells. The session does not know of them yet:
 * it is told of all results of a turn when the turn has ended. `from` are the files that it knows.
 */
export function filesAfterTurn(
  record: RunRecord,
  turn: TurnName,
  from: Digest | undefined,
): ToolEvidence | undefined {
  const steps = callsOf(turn, record).flatMap(entry => {
    const evidence = outcomeIn(entry, 'tool')?.value?.evidence
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

/** Each call of the turn that has an outcome; where equal askers made the same, the one that this asker has. */
function callsOf({ session, asker }: TurnName, record: RunRecord): JournalEntry[] {
  const state = stateIn(session, record.rule)
  const calls = new Map<unknown, { entry: JournalEntry; score: number }>()
  for (const entry of record.effects()) {
    const asked = askedIn(entry, 'tool')
    if (asked === undefined || outcomeIn(entry)?.value === undefined) continue
    const theirs = record.askerOf(entry)
    if (asked.state !== state || theirs.by !== asker.by || theirs.inside !== asker.inside) continue
    const { place } = asked.request
    const score = (theirs.branch === asker.branch ? 2 : 0) + (theirs.sample === asker.sample ? 1 : 0)
    const known = calls.get(place)
    if (known === undefined || score > known.score) calls.set(place, { entry, score })
  }
  return [...calls.values()].map(({ entry }) => entry)
}

/** The files that a run which is borrowed from began with, and those that it left. */
export interface LentFiles {
  readonly began: Digest
  readonly left: Digest
}

/** Undefined when it changed none. */
export async function lentFiles(record: RunRecord, store: Store): Promise<LentFiles | undefined> {
  const { output } = await store.runs.get(record.run)
  const left = output === null ? undefined : foldAt(valueFrom(await store.sessions.get(output)).tip).tree
  for (const entry of left === undefined ? [] : record.effects()) {
    const began = outcomeIn(entry, 'tool')?.value?.evidence?.before
    if (began !== undefined) return began === left ? undefined : { began, left: left as Digest }
  }
  return undefined
}

/** Whether something was cut off that changes files, so that they may be half-written. */
export function wasCutOff(record: RunRecord): boolean {
  return record.effects().some(entry => {
    const { rule, facts } = askedIn(entry)
    return entry.outcome === undefined && (rule === 'workspace' || facts?.sandboxed === true)
  })
}
