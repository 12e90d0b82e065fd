import type { JsonObject } from '../base/json.ts'
import type { Session } from '../session/session.ts'
import type { RunContext } from './context.ts'
import type { Asked } from './entry.ts'
import { scopeIn } from './scope.ts'

/** Where a budget may end a piece of work. */
export interface BudgetEnd {
  readonly session: Session
  /** Tells places on the same session apart; nothing for the loop of an agent. */
  readonly place?: JsonObject
}

/**
 * What of the budget is used up, now or when this was recorded: a replay spends no time, and need not be given the budget again. A resumed run
 * gets its answers in another order than it paid for them, so what is on record is not refused; what is not, `ask` refuses.
 */
export function spentAt(end: BudgetEnd, context: RunContext): string | undefined {
  const { budget, run } = context
  const spent = run.isResumed ? undefined : budget.spent
  if (spent !== undefined || !run.isRecorded) return spent
  return run.door.recall(askedAt(end, context))?.value as string | undefined
}

/** Puts on record that the budget ended the work here. */
export async function recordEnd(spent: string, end: BudgetEnd, context: RunContext): Promise<void> {
  await context.run.door.pass(askedAt(end, context), async () => ({ value: spent }))
}

/** Both. */
export async function endedAt(end: BudgetEnd, context: RunContext): Promise<string | undefined> {
  const spent = spentAt(end, context)
  if (spent !== undefined) await recordEnd(spent, end, context)
  return spent
}

function askedAt({ session, place = {} }: BudgetEnd, context: RunContext): Asked {
  const { sample } = scopeIn(context)
  return {
    kind: 'budget',
    session,
    request: place,
    sample,
    rule: 'pure',
    by: context.by,
    light: true,
    own: true,
  }
}
