import { cancelledError, LinkedAbort } from '../base/abort.ts'
import { setClock } from '../base/clock.ts'
import { RathError, show } from '../base/errors.ts'
import { newId } from '../base/ids.ts'
import { acceptAltered } from '../session/altered.ts'
import type { ChunkInput, InsideSession } from '../session/chunk.ts'
import { type Lineage, lineage, onLane } from '../session/lineage.ts'
import type { PartInput } from '../session/part.ts'
import { freshSession, Session, sessionOf, valueFrom, withFiles } from '../session/session.ts'
import { tipAfter } from '../session/value.ts'
import { checkMade, narrow, type Policy } from '../tool/policy/policy.ts'
import { Budget } from './budget.ts'
import {
  type CallOptions,
  currentContext,
  emit,
  type OnBudget,
  RunClock,
  type RunContext,
  runInContext,
} from './context.ts'
import { EventStream, type RunEnd } from './event.ts'
import { callAround, callInside, Scope, scopeIn } from './frame.ts'
import { PendingSession, type SessionInput, untilMade } from './pending-session.ts'
import { keptLimits } from './replay/resume.ts'
import { Run, runSetup } from './run.ts'
import { defaultRuntime, type Runtime } from './runtime.ts'
import type { AgentFacts, CallTrace } from './telemetry/tracing.ts'

/** Something that makes a session of a session; a layer hands its `forward` in here. */
export interface Callee {
  /** Its part of the producer path. */
  readonly name: string
  /** The same inside the call of another layer, which may hold it under a name of its own. */
  nameIn?(caller: RunContext): string
  /** What the lineage calls it. */
  readonly operation: string
  /** What calls made inside this one are told as their caller. */
  readonly layer?: object
  readonly options?: CallOptions
  /** Set when it is an agent; only telemetry looks. */
  readonly agent?: AgentFacts | undefined
  forward(session: Session, context: RunContext): Session | Promise<Session>
  /** The structured output of a session that it made, where it promises one. */
  readonly outputOf?: ((session: Session) => Promise<unknown>) | undefined
}

/** The session that an input is or starts. */
export function asSession(input: SessionInput): Session | PendingSession {
  return typeof input === 'string' || Array.isArray(input)
    ? Session.fromUserMessage(input as string | readonly PartInput[])
    : (input as Session | PendingSession)
}

const noOptions: CallOptions = Object.freeze({})

/**
 * Calls a layer: makes the context, starts the work in the next turn, and returns at once. A call inside another one belongs
 * to its run: it spends from that budget, emits into that stream and ends when that one is cancelled.
 */
export function call(callee: Callee, given: SessionInput, options: CallOptions = noOptions): PendingSession {
  checkInput(given, callee.name)
  const input = asSession(given)
  // A run that is begun as such is nobody's part, wherever that happens.
  const outer = options[runSetup] ? undefined : (currentContext() as CallContext | undefined)
  const name = outer ? (callee.nameIn?.(outer) ?? callee.name) : callee.name
  const made = outer && callInside(outer)
  const context = new CallContext(
    {
      by: outer ? `${outer.by}/${name}` : name,
      operation: callee.operation,
      parent: input.id,
      layer: callee.layer,
      sample: outer ? scopeIn(outer).sampleOf(name, input, outer.run.door.rule) : '',
      inside: made && outer && insideOf(outer),
      own: callee.options,
      options,
    },
    outer,
  )
  return new PendingSession(context, () => perform(callee, input, context, outer === undefined, made), callee)
}

function insideOf(outer: CallContext): { session: string; callId?: string } {
  const callId = callAround(outer)
  return { session: outer.out.id, ...(callId !== undefined && { callId }) }
}

async function perform(
  callee: Callee,
  input: Session | PendingSession,
  context: CallContext,
  isOutermost: boolean,
  /** Tells the effect whose work makes this call what came of it. */
  madeInside: ReturnType<typeof callInside>,
): Promise<Session> {
  const { run } = context
  run.enter()
  emit(context, { type: 'run-start' })
  let session: Session | undefined
  let trace: CallTrace | undefined
  try {
    session = input instanceof Session ? input : await untilMade(input, context.signal)
    if (context.aborted) throw cancelledError(context.signal)
    // Forks are numbered from the beginning of a call: who else forks this session, and when, is a matter of luck.
    const fresh = withFiles(freshSession(session), context.runtime.files)
    const given = context.acceptsAltered ? acceptAltered(fresh) : fresh
    if (given.id !== session.id) context.comesFrom(given)
    context.input = given.id === session.id ? session : given
    if (isOutermost) run.input = given
    trace = context.runtime.tracing?.call(callee, given, context)
    const made = await runInContext(context, () =>
      trace ? trace.run(() => callee.forward(given, context)) : callee.forward(given, context),
    )
    const notes = context.takeNotes()
    const output = asOutput(made, callee.name, context)
    const result = notes.length === 0 ? output : await withNotes(output, notes, context)
    const isKept = made.id === result.id && notes.length === 0
    // The layers inside keep what they make; the node that this one adds has nobody else to keep it.
    if (isOutermost) await run.done(result, isKept)
    else if (madeInside || notes.length > 0 || (run.hasEffects && isWork(made))) await run.keep(result)
    madeInside?.(await asKept(result, context))
    if (notes.length > 0 && context.events.observed)
      for (const chunk of result.chunks.slice(-notes.length)) emit(context, { type: 'chunk', chunk })
    trace?.done(result, made)
    emit(context, { type: 'run-end', status: 'done' })
    return result
  } catch (raw) {
    const thrown = await withoutSecrets(raw, context)
    const known = session ? run.own(thrown) : run.ownInput(thrown)
    // The innermost call knows most of the work.
    if (session) known.session ??= session
    known.runId ??= run.id
    const notes = context.takeNotes()
    const soFar = known.session
    if (notes.length > 0 && soFar instanceof Session)
      // What stopped it may be the store itself.
      known.session = await withNotes(passedOn(soFar, context), notes, context).catch(() => soFar)
    if (madeInside && known.session instanceof Session) {
      const left = known.session
      // What stopped it may be the store itself.
      await Promise.resolve(run.keep(left)).catch(() => {})
      madeInside(await asKept(left, context))
    }
    const error = isOutermost ? await run.failed(known) : known
    trace?.failed(error, endOf(error))
    emit(context, { type: 'run-end', status: endOf(error), error: error.message })
    throw error
  } finally {
    if (run.leave()) await context.runtime.places.leave(run.id)
    context.end()
  }
}

/** Nobody is shown a secret in a message. A run that has not opened its store has met none. */
async function withoutSecrets(thrown: unknown, { runtime }: RunContext): Promise<unknown> {
  if (!runtime.isOpen || !(thrown instanceof Error)) return thrown
  const store = await runtime.store.catch(() => undefined)
  return store ? store.clean(thrown) : thrown
}

function endOf({ code }: RathError): RunEnd {
  if (code === 'cancelled') return 'cancelled'
  return code === 'run-waiting' || code === 'needs-review' ? 'waiting' : 'failed'
}

/** What a layer has made of sessions itself; what inner calls made, they have kept. */
function isWork({ lineage }: Session): boolean {
  return ownWork.has(lineage.operation)
}

const ownWork: ReadonlySet<string> = new Set(['append', 'merge', 'to', 'rewind', 'restore'])

/** The result under the id that was promised; a layer that passes on another's session adds a node for itself. */
function asOutput(made: unknown, name: string, { out }: RunContext): Session {
  if (!(made instanceof Session)) {
    throw new RathError('invalid-argument', `${name}.forward must return a Session, not ${show(made)}.`)
  }
  return passedOn(made, { out })
}

function passedOn(made: Session, { out }: Pick<RunContext, 'out'>): Session {
  if (made.id === out.id) return made
  const { tip, branch, lineage, since, files } = valueFrom(made)
  const extras = Object.freeze({ ...out.lineage.extras, result: made.id })
  const from = onLane({ ...out.lineage, extras }, lineage.lane)
  return sessionOf({ id: out.id, tip, branch, lineage: from, since, files })
}

/** A session as a tool result names it. */
async function asKept(session: Session, { runtime }: RunContext): Promise<InsideSession> {
  const { id, head } = (await runtime.store).clean(session)
  return { session: id, head: head ?? null }
}

/** The same with what was done for it on its record, as the store keeps it. */
async function withNotes(
  session: Session,
  notes: readonly ChunkInput[],
  { runtime, clock }: RunContext,
): Promise<Session> {
  const value = valueFrom(session)
  const at = Math.max(clock ? clock.now() : Date.now(), value.tip?.at ?? 0)
  const tip = tipAfter(value, notes, at)
  const noted = sessionOf({ ...value, tip })
  return (await runtime.store).clean(noted)
}

function checkInput(input: unknown, name: string): asserts input is SessionInput {
  if (input instanceof Session || input instanceof PendingSession) return
  if (typeof input === 'string' || Array.isArray(input)) return
  throw new RathError(
    'invalid-argument',
    `${name} takes a message, a Session or a pending one, not ${show(input)}: ${name}('…'), or ${name}(Session.fromUserMessage('…')).`,
  )
}

/** What is known about a call before it starts. */
interface CallFacts {
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
class CallContext implements RunContext {
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
    now: () => currentContext()?.clock?.now() ?? Date.now(),
    served: at => currentContext()?.clock?.served(at),
    live: () => currentContext()?.clock?.live(),
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
