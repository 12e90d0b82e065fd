import { RathError, show } from '../../base/errors.ts'
import type { JsonObject } from '../../base/json.ts'
import type { RunRow } from '../../store/spec.ts'
import type { BudgetLimits } from '../budget.ts'

/** The options of a call that a resumed run has to go on under. */
export interface Limits {
  readonly policy?: object | undefined
  readonly budget?: BudgetLimits | undefined
  readonly approveWithin?: number | undefined
  readonly onBudget?: 'return' | 'throw' | undefined
}

/** What the row of a run keeps of them. A policy may be code: only that there is one. */
export function keptLimits({ policy, budget, approveWithin, onBudget }: Limits): JsonObject {
  const limits = Object.entries(budget ?? {}).filter(([, limit]) =>
    Number.isFinite(typeof limit === 'object' ? limit.limit : limit),
  )
  return {
    ...(policy && { policy: true }),
    ...(limits.length > 0 && { budget: Object.fromEntries(limits) }),
    ...(onBudget && { onBudget }),
    ...(Number.isFinite(approveWithin) && { approveWithin: approveWithin as number }),
  }
}

/** The options of a resume: those that the run was begun with, where others are not given. A policy has to be. */
export function withLimits({ id, data }: RunRow, given: Limits): Limits {
  if (data.policy === true && given.policy === undefined) {
    throw new RathError(
      'invalid-argument',
      `Run ${id} was begun with a policy, which is code and not on record; without it, what it denied would be done. Give it again, in code: runtime.resume(${show(id)}, workflow, { policy }).`,
      { data: { run: id } },
    )
  }
  const kept = data as Limits
  const { budget = kept.budget, approveWithin = kept.approveWithin, onBudget = kept.onBudget } = given
  return {
    ...given,
    ...(budget && { budget }),
    ...(onBudget && { onBudget }),
    ...(approveWithin !== undefined && { approveWithin }),
  }
}
