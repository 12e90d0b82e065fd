import { RathError, show } from '../base/errors.ts'
import type { Usage } from '../session/usage.ts'

/** What a run may spend. What is left out is unlimited. */
export interface BudgetLimits {
  /** Input and output tokens together. */
  readonly tokens?: number
  /** US dollars, counted where a price is known. */
  readonly cost?: number
  /** Model calls. */
  readonly rounds?: number
  /** Milliseconds from the start. */
  readonly time?: number
}

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
      if (limit !== undefined && !(limit >= 0)) {
        throw new RathError(
          'invalid-argument',
          `A budget's ${name} must be a number of at least 0, not ${show(limit)}.`,
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
    const { tokens, cost, rounds, time } = this.#limits
    if (tokens !== undefined && this.#tokens >= tokens) return `${this.#tokens} of ${tokens} tokens are spent`
    if (cost !== undefined && this.#cost >= cost) return `$${this.#cost.toFixed(4)} of $${cost} are spent`
    if (rounds !== undefined && this.#rounds >= rounds) return `${this.#rounds} of ${rounds} rounds are used`
    if (time !== undefined && this.#now() - this.#started >= time) return `the ${time} ms are over`
    return this.#outer?.spent
  }

  /** Milliseconds until the first time limit ends. */
  get timeLeft(): number {
    const own = this.#limits.time === undefined ? Infinity : this.#limits.time - (this.#now() - this.#started)
    return Math.min(own, this.#outer?.timeLeft ?? Infinity)
  }
}
