import { LinkedAbort } from '../base/abort.ts'
import { setClock } from '../base/clock.ts'
import { RathError, show } from '../base/errors.ts'
import { newId } from '../base/ids.ts'
import type { ChunkInput } from '../session/chunk.ts'
import { type Lineage, lineage } from '../session/lineage.ts'
import type { Session } from '../session/session.ts'
import { checkMade, narrow, type Policy } from '../tool/policy/policy.ts'
import { currentCall } from './around.ts'
import { Budget } from './budget.ts'
import type { CallOptions, OnBudget, RunContext } from './context.ts'
import { EventStream } from './event-stream.ts'
import { keptLimits } from './replay/begun-with.ts'
import { Run, runSetup } from './run.ts'
import { RunClock } from './run-clock.ts'
import { defaultRuntime, type Runtime } from './runtime.ts'
import { Scope } from './scope.ts'

/** What is known about a call before it starts. */
export interface CallFacts {
  readonly by: string
  readonly operation: string
  readonly parent: string
  readonly layer: object | undefined
  readonly sample: string
  /** The session and the tool call that it is made in. */
  readonly inside?: { readonly session: string; readonly callId?: string } | undefined
  /** What the layer says about every call of it, and what the caller says about this one. */
  readonly own: CallOptions | undefined
  readonly options: CallOptions
}

/** Of calls outside any budget. Nothing is ever refused by it, so all of them may count on it. */
const unlimited = new Budget()

/** The context of one call. A layer that only hands a session on pays for none of the parts it does not look at. */
export class CallContext implements RunContext {
  readonly runtime: Runtime
  readonly run: Run
  readonly scope: Scope
  readonly clock: RunClock | undefined
  input: Session | undefined
  #notes: ChunkInput[] | undefined
  readonly by: string
  readonly layer: object | undefined
  out: RunContext['out']
  readonly events: EventStream
  readonly budget: Budget
  readonly onBudget: OnBudget
  readonly policy: Policy | undefined
  readonly approve: RunContext['approve']
  readonly approveWithin: number | undefined
  readonly acceptsAltered: boolean
  readonly #outer: CallContext | undefined
  /** Whether anything in the run can be cancelled yet: while nothing can, no call has to ask those around it. */
  readonly #inRun: { cancellable: boolean }
  readonly #own: AbortSignal | undefined
  readonly #given: AbortSignal | undefined
  #abort: LinkedAbort | undefined
  #isOver = false
  /** Calls inside it that work. They may outlive it: somebody failed beside them, or nobody waits for them. */
  #inner = 0

  constructor(facts: CallFacts, outer: CallContext | undefined) {
    const { by, own, options } = facts
    this.runtime = options.runtime ?? outer?.runtime ?? defaultRuntime()
    this.scope = new Scope(facts.sample)
    this.by = by
    this.layer = facts.layer
    this.events = new EventStream(outer?.events)
    this.budget = budgetIn(budgetIn(outer?.budget, own), options) ?? unlimited
    this.onBudget = checkOnBudget(options.onBudget ?? own?.onBudget) ?? outer?.onBudget ?? 'return'
    this.policy = narrowed(narrowed(outer?.policy, own?.policy), options.policy)
    this.approve = options.approve ?? own?.approve ?? outer?.approve
    this.approveWithin = within(options.approveWithin ?? own?.approveWithin) ?? outer?.approveWithin
    this.acceptsAltered = accepts(options.altered ?? own?.altered) ?? outer?.acceptsAltered ?? false
    if (own?.onEvent) this.events.listen(own.onEvent)
    if (options.onEvent) this.events.listen(options.onEvent)
    this.#outer = outer
    if (outer) outer.#inner++
    this.#inRun = outer ? outer.#inRun : { cancellable: false }
    if (own?.signal || options.signal) this.#inRun.cancellable = true
    this.#own = own?.signal
    this.#given = options.signal
    // Last: a call that is refused for its options has begun nothing, and drives no run.
    this.run = outer?.run ?? this.#newRun(facts)
    const { run } = this
    this.clock = outer ? outer.clock?.inner() : run.isResumed ? resumedClock(run) : undefined
    this.out = { id: newId(), lineage: this.#lineage(facts) }
  }

  get notes(): ChunkInput[] {
    this.#notes ??= []
    return this.#notes
  }

  /** The notes, which are on the record of somebody from now on. */
  takeNotes(): readonly ChunkInput[] {
    return this.#notes?.splice(0) ?? []
  }

  get runId(): string {
    return this.run.id
  }

  get isOutermost(): boolean {
    return this.#outer === undefined
  }

  get signal(): AbortSignal {
    if (this.#abort) return this.#abort.signal
    this.#inRun.cancellable = true
    this.#abort = this.#isEnded
      ? new LinkedAbort()
      : new LinkedAbort(this.#outer?.signal, this.#own, this.#given)
    return this.#abort.signal
  }

  get aborted(): boolean {
    if (!this.#inRun.cancellable) return false
    if (this.#abort) return this.#abort.signal.aborted
    return this.#given?.aborted || this.#own?.aborted || (this.#outer?.aborted ?? false)
  }

  /** What it makes comes from another session than the one it was called with. */
  comesFrom({ id }: Session): void {
    this.out = { ...this.out, lineage: Object.freeze({ ...this.out.lineage, parents: Object.freeze([id]) }) }
  }

  cancel(reason: unknown): void {
    void this.signal
    this.#abort?.abort(reason ?? new Error(`${this.by} was cancelled`))
  }

  /** Says which run made it, and for whom where that was not whoever goes on from it. */
  #lineage({ operation, parent, by, inside }: CallFacts): Lineage {
    const extras = { run: this.runId, ...(inside && { inside }) }
    return lineage(operation, [parent], { by, extras, ...(this.clock && { at: this.clock.now() }) })
  }

  #newRun({ by, options }: CallFacts): Run {
    const { runtime } = this
    return new Run(
      {
        workflow: by,
        limits: () => keptLimits(options),
        lease: runtime.lease,
        isOpen: () => runtime.isOpen,
        store: () => runtime.store,
        begin: input => runtime.places.begin(input),
        cancel: reason => this.cancel(reason),
      },
      options[runSetup],
    )
  }

  /** Nothing is told any more, and nothing is listened to once no call inside it works: until then the end of the run ends those too. */
  end(): void {
    this.#isOver = true
    this.clock?.end()
    this.events.end()
    this.#unlink()
  }

  get #isEnded(): boolean {
    return this.#isOver && this.#inner === 0
  }

  #unlink(): void {
    if (!this.#isEnded) return
    this.#abort?.[Symbol.dispose]()
    const outer = this.#outer
    if (outer === undefined) return
    outer.#inner--
    outer.#unlink()
  }
}

/** From the first resumed run on, whoever records asks the call that it is inside of for the time. */
function resumedClock({ begunAt }: Run): RunClock {
  setClock({
    now: () => currentCall()?.clock?.now() ?? Date.now(),
    served: at => currentCall()?.clock?.served(at),
    live: () => currentCall()?.clock?.live(),
  })
  return new RunClock(begunAt)
}

function budgetIn(outer: Budget | undefined, options: CallOptions | undefined): Budget | undefined {
  return options?.budget ? new Budget(options.budget, outer) : outer
}

function checkOnBudget(onBudget: OnBudget | undefined): OnBudget | undefined {
  if (onBudget === undefined || onBudget === 'return' || onBudget === 'throw') return onBudget
  throw new RathError('invalid-argument', `onBudget is 'return' or 'throw', not ${show(onBudget)}.`)
}

function within(ms: number | undefined): number | undefined {
  if (ms === undefined || (typeof ms === 'number' && ms >= 0)) return ms
  throw new RathError('invalid-argument', `approveWithin is milliseconds from 0, not ${show(ms)}.`)
}

/** What both allow. */
function narrowed(outer: Policy | undefined, inner: Policy | undefined): Policy | undefined {
  if (inner === undefined) return outer
  return outer ? narrow(outer, inner) : checkMade(inner)
}

function accepts(altered: unknown): boolean | undefined {
  if (altered === undefined) return undefined
  if (altered === 'accept' || altered === 'refuse') return altered === 'accept'
  throw new RathError('invalid-argument', `altered is 'refuse' or 'accept', not ${show(altered)}.`)
}
