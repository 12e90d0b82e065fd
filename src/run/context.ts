import type { Clock } from '../base/clock.ts'
import type { ChunkInput } from '../session/chunk.ts'
import type { Lineage } from '../session/lineage.ts'
import type { Session } from '../session/session.ts'
import type { ApprovalDecision, ApprovalRequest } from '../tool/approval.ts'
import type { Policy } from '../tool/policy/policy.ts'
import type { Budget, BudgetLimits } from './budget.ts'
import { callHere, type Maker } from './effect.ts'
import type { EventBody, EventListener, EventStream } from './event.ts'
import type { Scope } from './frame.ts'
import type { Run, RunSetup, runSetup } from './run.ts'
import type { Runtime } from './runtime.ts'

/** What a caller can say about one call. Calls made inside it inherit all of it. */
export interface CallOptions {
  /** Aborting it cancels the call: sockets close, tools are told, and the session so far is on the error. */
  readonly signal?: AbortSignal
  /** For this call and everything inside it, branches included. */
  readonly budget?: BudgetLimits
  /**
   * What a call does that a budget or `maxRounds` ends: `return` the session so far, whose `stopped` says why (default), or `throw` an error
   * with the same code and that session.
   */
  readonly onBudget?: OnBudget
  /** Decides calls that need a person. */
  readonly approve?: Approve
  /** Told about every event of this call and of those inside it. */
  readonly onEvent?: EventListener
  /** Where it is recorded; that of the call around it, or the default one, if it names none. */
  readonly runtime?: Runtime
  /** Narrows what tools may do. */
  readonly policy?: Policy
  /**
   * What to do with a session that is not as it was recorded: `refuse` (default) throws `session-altered` before an agent acts on it; `accept`
   * continues with what is there now, and says so on the record.
   */
  readonly altered?: 'refuse' | 'accept'
  /** Milliseconds that a question to a person stays open; then it counts as `expired`. No limit by default. */
  readonly approveWithin?: number
  /** For the runtime, which begins runs. */
  readonly [runSetup]?: RunSetup
}

export type OnBudget = 'return' | 'throw'

export type Approve = (request: ApprovalRequest) => ApprovalDecision | Promise<ApprovalDecision>

/** What a call of a workflow works in. A call made inside another finds that one's context and narrows it. */
export interface RunContext extends Maker {
  readonly runtime: Runtime
  /** The same for all calls of one run, branches included. */
  readonly run: Run
  /** Set in a run that goes on with its record. */
  readonly clock: RunClock | undefined
  /** Whether this is the call that the run is: nobody goes on from it before the run has ended. */
  readonly isOutermost: boolean
  readonly runId: string
  /** What calls made inside this one are counted in. */
  readonly scope: Scope
  /** What was done for the session that it makes and is not on its record yet: whatever its memory did. */
  readonly notes: ChunkInput[]
  /** What it was called with, once that is there. */
  readonly input: Session | undefined
  /** Producer path of this call. */
  readonly by: string
  /** What is being called, so that it can say what it calls its parts. */
  readonly layer?: object | undefined
  /** The node of the graph that this call makes, known before its work is done. */
  readonly out: { readonly id: string; readonly lineage: Lineage }
  readonly events: EventStream
  readonly budget: Budget
  readonly onBudget: OnBudget
  /** Made when first read: most layers only pass a session on and never look. */
  readonly signal: AbortSignal
  /** The same as `signal.aborted`, without making one. */
  readonly aborted: boolean
  readonly policy: Policy | undefined
  readonly approve: Approve | undefined
  readonly approveWithin: number | undefined
  /** Whether sessions that are not as they were recorded are accepted. */
  readonly acceptsAltered: boolean
}

/** The call that the running code is inside of, if it is inside one. */
export function currentContext(): RunContext | undefined {
  return callHere.here as RunContext | undefined
}

export function runInContext<T>(context: RunContext, work: () => T): T {
  return callHere.run(context, work)
}

export function emit(context: RunContext, body: EventBody): void {
  if (context.events.observed) context.events.emit({ ...body, by: context.by, sessionId: context.out.id })
}

/**
 * The time in a call of a resumed run: that of the last outcome it was given from the record, until it does something that is not on
 * record. So what it makes on the way has the time at which it was first made, and no time runs backwards.
 */
export class RunClock implements Clock {
  readonly #outer: RunClock | undefined
  /** Undefined when the call has gone past its record: then the clock on the wall counts. */
  #at: number | undefined

  constructor(at: number | undefined, outer?: RunClock) {
    this.#at = at
    this.#outer = outer
  }

  now(): number {
    return this.#at ?? Date.now()
  }

  served(at: number | undefined): void {
    if (at !== undefined && this.#at !== undefined) this.#at = Math.max(this.#at, at)
  }

  live(): void {
    this.#at = undefined
  }

  /** For a call inside this one. */
  inner(): RunClock {
    return new RunClock(this.#at, this)
  }

  /** The call has ended: whoever goes on from it is as late. */
  end(): void {
    if (this.#at === undefined) this.#outer?.live()
    else this.#outer?.served(this.#at)
  }
}
