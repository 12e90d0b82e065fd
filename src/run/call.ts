import { cancelledError } from '../base/abort.ts'
import { RathError, show } from '../base/errors.ts'
import { acceptAltered } from '../session/altered.ts'
import type { ChunkInput, InsideSession } from '../session/chunk.ts'
import { onLane } from '../session/lineage.ts'
import { freshSession, Session, sessionOf, valueFrom } from '../session/session.ts'
import { tipAfter } from '../session/value.ts'
import { CallContext } from './call-context.ts'
import { type CallOptions, currentContext, emit, type RunContext, runInContext } from './context.ts'
import type { RunEnd } from './event.ts'
import { callAround, callInside } from './inside.ts'
import { inputError, ownError } from './own-error.ts'
import { PendingSession, untilMade } from './pending-session.ts'
import { runSetup } from './run.ts'
import { scopeIn } from './scope.ts'
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
}

export type SessionInput = Session | PendingSession

const noOptions: CallOptions = Object.freeze({})

/**
 * Calls a layer: makes the context, starts the work in the next turn, and returns at once. A call inside another one belongs
 * to its run: it spends from that budget, emits into that stream and ends when that one is cancelled.
 */
export function call(callee: Callee, input: SessionInput, options: CallOptions = noOptions): PendingSession {
  checkInput(input, callee.name)
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
  return new PendingSession(context, () => perform(callee, input, context, outer === undefined, made))
}

function insideOf(outer: CallContext): { session: string; callId?: string } {
  const callId = callAround(outer)
  return { session: outer.out.id, ...(callId !== undefined && { callId }) }
}

async function perform(
  callee: Callee,
  input: SessionInput,
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
    const given = context.acceptsAltered ? acceptAltered(freshSession(session)) : freshSession(session)
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
    const known = session ? ownError(thrown, run) : inputError(thrown, run)
    // The innermost call knows most of the work.
    if (session) known.session ??= session
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
  const { tip, branch, lineage, since } = valueFrom(made)
  const extras = Object.freeze({ ...out.lineage.extras, result: made.id })
  const from = onLane({ ...out.lineage, extras }, lineage.lane)
  return sessionOf({ id: out.id, tip, branch, lineage: from, since })
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
  throw new RathError(
    'invalid-argument',
    `${name} takes a Session or a pending one, not ${show(input)}; start one with Session.fromUserMessage('…').`,
  )
}
