import { LinkedAbort } from '../base/abort.ts'
import { RathError, show } from '../base/errors.ts'
import { isPlainObject } from '../base/json.ts'
import { longestTimer } from '../base/time.ts'
import type { CostLimit, ProviderBudget } from '../model/provider.ts'
import type { Usage } from '../session/usage.ts'

/** What a run may spend. What is left out is unlimited. */
export type BudgetLimits = ProviderBudget

const names = ['tokens', 'cost', 'rounds', 'time'] as const

/**
 * Counts what is spent, here and in every budget around this one, so that a call, its agent and the whole run with
 * its branches are held to their limits at the same time.
 */
export class Budget {
  readonly #limits: BudgetLimits
  readonly #outer: Budget | undefined
  readonly #now: () => number
  readonly #started: number
  #tokens = 0
  #cost = 0
  #rounds = 0

  constructor(limits: BudgetLimits = {}, outer?: Budget, now: () => number = Date.now) {
    for (const name of Object.keys(limits)) {
      const limit = limits[name as keyof BudgetLimits]
      if (!names.includes(name as keyof BudgetLimits)) {
        throw new RathError(
          'invalid-argument',
          `A budget has no ${show(name)}; it limits ${names.join(', ')}.`,
        )
      }
      if (limit === undefined || (typeof limit === 'number' && limit >= 0)) continue
      if (name !== 'cost' || !isCostLimit(limit)) {
        const shape = name === 'cost' ? " or { limit: 5, unknown: 'ignore' }" : ''
        throw new RathError(
          'invalid-argument',
          `A budget's ${name} must be a number of at least 0${shape}, not ${show(limit)}.`,
        )
      }
    }
    this.#limits = limits
    this.#outer = outer
    this.#now = now
    this.#started = now()
  }

  addRound(): void {
    this.#rounds++
    this.#outer?.addRound()
  }

  /** What a model of one's own left out is filled in, as on the chunk of its answer. */
  addUsage(usage: Partial<Usage>): void {
    const { inputTokens = 0, outputTokens = 0, totalTokens = inputTokens + outputTokens, cost = 0 } = usage
    this.#tokens += totalTokens
    this.#cost += cost
    this.#outer?.addUsage(usage)
  }

  /** What is used up, as a sentence; undefined while there is something left of everything. */
  get spent(): string | undefined {
    const { tokens, rounds, time } = this.#limits
    const cost = dollars(this.#limits)
    if (tokens !== undefined && this.#tokens >= tokens) return `${this.#tokens} of ${tokens} tokens are spent`
    if (cost !== undefined && this.#cost >= cost) return `$${this.#cost.toFixed(4)} of $${cost} are spent`
    if (rounds !== undefined && this.#rounds >= rounds) return `${this.#rounds} of ${rounds} rounds are used`
    if (time !== undefined && this.#now() - this.#started >= time) return `the ${time} ms are over`
    return this.#outer?.spent
  }

  /** Whether it counts dollars, and nobody has said that models without a price may be asked all the same. */
  get needsPrices(): boolean {
    return needsPrices(this.#limits) || (this.#outer?.needsPrices ?? false)
  }

  /** Milliseconds until the first time limit ends. */
  get timeLeft(): number {
    const own = this.#limits.time === undefined ? Infinity : this.#limits.time - (this.#now() - this.#started)
    return Math.min(own, this.#outer?.timeLeft ?? Infinity)
  }
}

/** Whether these limits refuse a model whose price is not known. */
export function needsPrices(limits: BudgetLimits): boolean {
  const { cost } = limits
  return (dollars(limits) ?? Infinity) < Infinity && !(typeof cost === 'object' && cost.unknown === 'ignore')
}

/** Why a budget of dollars cannot hold a model. */
export function unknownPrice(model: string): RathError {
  return new RathError(
    'unknown-price',
    `There is a budget of dollars, and what ${model} costs is not known, so it would never be spent. Give its price, new Provider({ prices: { ${show(model)}: { input, output } } }), have a model of your own say \`priced: true\` and fill in usage.cost, or count it as nothing: budget: { cost: { limit: 5, unknown: 'ignore' } }.`,
    { data: { model } },
  )
}

function dollars({ cost }: BudgetLimits): number | undefined {
  return typeof cost === 'object' ? cost.limit : cost
}

function isCostLimit(value: unknown): boolean {
  if (!isPlainObject(value)) return false
  const { limit, unknown = 'refuse', ...rest } = value as Partial<Record<keyof CostLimit, unknown>>
  const isKnown = unknown === 'refuse' || unknown === 'ignore'
  return typeof limit === 'number' && limit >= 0 && isKnown && Object.keys(rest).length === 0
}

/** The call's signal, which aborts also when the time of the budget is over. */
export class Deadline implements Disposable {
  readonly signal: AbortSignal
  readonly #abort: LinkedAbort | undefined
  readonly #timer: NodeJS.Timeout | undefined
  passed = false

  constructor({ signal, budget }: { readonly signal: AbortSignal; readonly budget: Budget }) {
    const { timeLeft } = budget
    this.signal = signal
    // Longer than a timer can hold is not limited by one.
    if (timeLeft > longestTimer) return
    const abort = new LinkedAbort(signal)
    this.#abort = abort
    this.signal = abort.signal
    this.#timer = setTimeout(
      () => {
        this.passed = true
        abort.abort(new Error('the time of the budget is over'))
      },
      Math.max(0, timeLeft),
    )
  }

  [Symbol.dispose](): void {
    clearTimeout(this.#timer)
    this.#abort?.[Symbol.dispose]()
  }
}
