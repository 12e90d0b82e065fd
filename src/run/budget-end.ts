import { RathError } from '../base/errors.ts'
import type { JsonObject } from '../base/json.ts'
import type { ChunkInput } from '../session/chunk.ts'
import type { Session } from '../session/session.ts'
import type { RunContext } from './context.ts'
import { type Asking, effect, recall } from './effect.ts'
import type { Recorder } from './recorder.ts'

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
  const { value, error } = recall(context, askingAt(end)) ?? {}
  return value ?? error?.spent
}

/** Puts on record that the budget ended the work here. Where that is an error, a resumed run with a larger one gets past it. */
export async function recordEnd(spent: string, end: BudgetEnd, context: RunContext): Promise<void> {
  await effect(context, askingAt(end), async () =>
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

function askingAt({ session, place = {} }: BudgetEnd): Asking<'budget'> {
  return { kind: 'budget', session, request: place, rule: 'pure', light: true, own: true }
}
