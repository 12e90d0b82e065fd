import { AsyncLocalStorage } from 'node:async_hooks'
import { Session } from '../session/session.ts'
import { type KeyRule, stateIn } from './entry.ts'

/** What a call is given: a session, or one that is still being made and known by its id. */
type Input = Session | { readonly id: string }

/**
 * Where calls are made from, and how equal ones are told apart: the second call of a name on the same state is `name#1`, in the order of
 * the program, whichever ends first. The first leaves no trace, so that most keys know nothing of this.
 */
export class Scope {
  readonly sample: string
  /** By name, the only input so far, or how often each was given. */
  #calls: Map<string, Input | Map<string, number>> | undefined
  /** By name, how often something was drawn here. */
  #draws: Map<string, number> | undefined

  constructor(sample = '') {
    this.sample = sample
  }

  /** The number of a draw among those of its name in this call. */
  drawOf(name: string): number {
    this.#draws ??= new Map()
    const ordinal = this.#draws.get(name) ?? 0
    this.#draws.set(name, ordinal + 1)
    return ordinal
  }

  /** The sample of a call made here. Looks at states only when a name is called again. */
  sampleOf(name: string, input: Input, rule: KeyRule): string {
    this.#calls ??= new Map()
    const before = this.#calls.get(name)
    if (before === undefined) {
      this.#calls.set(name, input)
      return this.sample
    }
    const counts = before instanceof Map ? before : new Map([[identify(before, rule), 1]])
    this.#calls.set(name, counts)
    const known = identify(input, rule)
    const ordinal = counts.get(known) ?? 0
    counts.set(known, ordinal + 1)
    return within(this.sample, name, ordinal)
  }
}

/** A sample for the `ordinal`th of several equal things. */
export function within(sample: string, name: string, ordinal: number): string {
  if (ordinal === 0) return sample
  return sample === '' ? `${name}#${ordinal}` : `${sample}/${name}#${ordinal}`
}

function identify(input: Input, rule: KeyRule): string {
  return input instanceof Session ? stateIn(input, rule) : input.id
}

interface Inside {
  /** The call whose effect is running. */
  readonly holder: object
  readonly scope: Scope
  /** The effect around this one. */
  readonly outer: Inside | undefined
  /** Something inside it depended on files. */
  sawFiles?: boolean
}

const effects = new AsyncLocalStorage<Inside>()

/**
 * Runs an effect whose own calls go through the door too. They are counted apart from all others: when the outcome of the effect is on
 * record they are not made again, and nothing else may count on them.
 */
export function runInEffect<T>(holder: object, sample: string, work: () => T): T {
  return effects.run({ holder, scope: new Scope(sample), outer: effects.getStore() }, work)
}

/** The scope of code that runs in `holder`: that of the effect it is inside of, or the call's own. */
export function scopeIn(holder: { readonly scope: Scope }): Scope {
  const inside = effects.getStore()
  return inside?.holder === holder ? inside.scope : holder.scope
}

/** Says, inside an effect, that what is done there depended on files. So does then what is around it. */
export function sawFiles(): void {
  for (let inside = effects.getStore(); inside; inside = inside.outer) inside.sawFiles = true
}

/** Whether something inside the effect around this code has said so. */
export function filesWereSeen(): boolean {
  return effects.getStore()?.sawFiles === true
}
