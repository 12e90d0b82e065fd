import { LinkedAbort } from '../base/abort.ts'
import { newId } from '../base/ids.ts'
import { lineage } from '../session/lineage.ts'
import { narrow, type Policy } from '../tool/policy/policy.ts'
import { Budget } from './budget.ts'
import type { CallOptions, RunContext } from './context.ts'
import { EventStream } from './event-stream.ts'
import { defaultRuntime, type Runtime } from './runtime.ts'

/** What is known about a call before it starts. */
export interface CallFacts {
  readonly by: string
  readonly operation: string
  readonly parent: string
  readonly layer: object | undefined
  /** What the layer says about every call of it, and what the caller says about this one. */
  readonly own: CallOptions | undefined
  readonly options: CallOptions
}

/** Of calls outside any budget. Nothing is ever refused by it, so all of them may count on it. */
const unlimited = new Budget()

/** The context of one call. A layer that only hands a session on pays for none of the parts it does not look at. */
export class CallContext implements RunContext {
  readonly runtime: Runtime
  readonly runId: string
  readonly by: string
  readonly layer: object | undefined
  readonly out: RunContext['out']
  readonly events: EventStream
  readonly budget: Budget
  readonly policy: Policy | undefined
  readonly approve: RunContext['approve']
  readonly #outer: CallContext | undefined
  /** Whether anything in the run can be cancelled yet: while nothing can, no call has to ask those around it. */
  readonly #run: { cancellable: boolean }
  readonly #own: AbortSignal | undefined
  readonly #given: AbortSignal | undefined
  #abort: LinkedAbort | undefined

  constructor(facts: CallFacts, outer: CallContext | undefined) {
    const { by, own, options } = facts
    this.runtime = options.runtime ?? outer?.runtime ?? defaultRuntime()
    this.runId = outer?.runId ?? newId()
    this.by = by
    this.layer = facts.layer
    this.out = { id: newId(), lineage: lineage(facts.operation, [facts.parent], { by }) }
    this.events = new EventStream(outer?.events)
    this.budget = budgetIn(budgetIn(outer?.budget, own), options) ?? unlimited
    this.policy = narrowed(narrowed(outer?.policy, own?.policy), options.policy)
    this.approve = options.approve ?? own?.approve ?? outer?.approve
    if (own?.onEvent) this.events.listen(own.onEvent)
    if (options.onEvent) this.events.listen(options.onEvent)
    this.#outer = outer
    this.#run = outer ? outer.#run : { cancellable: false }
    if (own?.signal || options.signal) this.#run.cancellable = true
    this.#own = own?.signal
    this.#given = options.signal
  }

  get signal(): AbortSignal {
    if (this.#abort) return this.#abort.signal
    this.#run.cancellable = true
    this.#abort = new LinkedAbort(this.#outer?.signal, this.#own, this.#given)
    return this.#abort.signal
  }

  get aborted(): boolean {
    if (!this.#run.cancellable) return false
    if (this.#abort) return this.#abort.signal.aborted
    return this.#given?.aborted || this.#own?.aborted || (this.#outer?.aborted ?? false)
  }

  cancel(reason: unknown): void {
    void this.signal
    this.#abort?.abort(reason ?? new Error(`${this.by} was cancelled`))
  }

  /** Nothing is told and nothing is listened to any more. */
  end(): void {
    this.#abort?.[Symbol.dispose]()
    this.events.end()
  }
}

function budgetIn(outer: Budget | undefined, options: CallOptions | undefined): Budget | undefined {
  return options?.budget ? new Budget(options.budget, outer) : outer
}

/** What both allow. */
function narrowed(outer: Policy | undefined, inner: Policy | undefined): Policy | undefined {
  return outer && inner ? narrow(outer, inner) : (inner ?? outer)
}
