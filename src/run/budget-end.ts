import { RathError } from '../base/errors.ts'
import type { JsonObject } from '../base/json.ts'
import type { ChunkInput } from '../session/chunk.ts'
import type { Session } from '../session/session.ts'
import type { RunContext } from './context.ts'
import type { Asked } from './entry.ts'
import type { Recorder } from './recorder.ts'
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
  const { value, error } = run.door.recall(askedAt(end, context)) ?? {}
  return (value ?? (error as { spent?: string } | undefined)?.spent) as string | undefined
}

/** Puts on record that the budget ended the work here. Where that is an error, a resumed run with a larger one gets past it. */
export async function recordEnd(spent: string, end: BudgetEnd, context: RunContext): Promise<void> {
  await context.run.door.pass(askedAt(end, context), async () =>
    context.onBudget === 'throw' ? { error: { spent } } : { value: spent },
  )
}

/** What ends a call before it is done. */
export interface Stop {
  readonly error: 'budget-spent' | 'max-rounds'
  readonly message: string
  readonly detail?: JsonObject
}

/** Puts it on the session, with what follows from it. Throws where the caller wants an error. */
export async function stopCall(
  { error, message, detail }: Stop,
  recorder: Recorder,
  { onBudget }: RunContext,
  ...chunks: readonly ChunkInput[]
): Promise<void> {
  const stop = { kind: 'error', error, message, retry: 'after', ...(detail && { detail }) } as const
  await recorder.record(stop, ...chunks)
  if (onBudget === 'throw') throw new RathError(error, message)
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
