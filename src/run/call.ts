import { cancelledError, LinkedAbort } from '../base/abort.ts'
import { RathError } from '../base/errors.ts'
import { newId } from '../base/ids.ts'
import { lineage } from '../session/lineage.ts'
import { Session, sessionOf, valueFrom } from '../session/session.ts'
import { narrow, type Policy } from '../tool/policy/policy.ts'
import { Budget } from './budget.ts'
import { type CallOptions, currentContext, emit, type RunContext, runInContext } from './context.ts'
import { EventStream } from './event-stream.ts'
import { PendingSession } from './pending-session.ts'
import { defaultRuntime, type Runtime } from './runtime.ts'

/** Something that makes a session of a session; a layer hands its `forward` in here. */
export interface Callee {
  /** Its part of the producer path. */
  readonly name: string
  /** What the lineage calls it. */
  readonly operation: string
  readonly options?: CallOptions
  forward(session: Session, context: RunContext): Session | Promise<Session>
}

export type SessionInput = Session | PendingSession

/**
 * Calls a layer: makes the context, starts the work in the next turn, and returns at once. A call inside another one belongs
 * to its run: it spends from that budget, emits into that stream and ends when that one is cancelled.
 */
export function call(
  callee: Callee,
  input: SessionInput,
  options: CallOptions = {},
  runtime?: Runtime,
): PendingSession {
  checkInput(input, callee.name)
  const outer = currentContext()
  const by = outer ? `${outer.by}/${callee.name}` : callee.name
  const abort = new LinkedAbort(outer?.signal, callee.options?.signal, options.signal)
  const context: RunContext = {
    runtime: runtime ?? outer?.runtime ?? defaultRuntime(),
    runId: outer?.runId ?? newId(),
    by,
    out: { id: newId(), lineage: lineage(callee.operation, [input.id], { by }) },
    events: new EventStream(outer?.events),
    budget: budgetOf(outer, callee.options, options),
    signal: abort.signal,
    policy: narrowed(outer?.policy, callee.options?.policy, options.policy),
    approve: options.approve ?? callee.options?.approve ?? outer?.approve,
  }
  for (const listener of [callee.options?.onEvent, options.onEvent])
    if (listener) context.events.listen(listener)

  const work = Promise.resolve().then(() => perform(callee, input, context))
  const settled = work.finally(() => {
    abort[Symbol.dispose]()
    context.events.end()
  })
  return new PendingSession(settled, {
    id: context.out.id,
    runId: context.runId,
    lineage: context.out.lineage,
    events: context.events,
    cancel: reason => abort.abort(reason ?? new Error(`${by} was cancelled`)),
  })
}

async function perform(callee: Callee, input: SessionInput, context: RunContext): Promise<Session> {
  emit(context, { type: 'run-start' })
  let session: Session | undefined
  try {
    session = await input
    if (context.signal.aborted) throw cancelledError(context.signal)
    const given = session
    const made = await runInContext(context, () => callee.forward(given, context))
    const result = asOutput(made, callee.name, context)
    emit(context, { type: 'run-end', status: 'done' })
    return result
  } catch (thrown) {
    const error = withSession(thrown, session)
    const status = error.code === 'cancelled' ? 'cancelled' : 'failed'
    emit(context, { type: 'run-end', status, error: error.message })
    throw error
  }
}

/** The result under the id that was promised; a layer that passes on another's session adds a node for itself. */
function asOutput(made: unknown, name: string, { out }: RunContext): Session {
  if (!(made instanceof Session)) {
    throw new RathError('invalid-argument', `${name}.forward must return a Session, not ${typeof made}.`)
  }
  if (made.id === out.id) return made
  const extras = { ...out.lineage.extras, result: made.id }
  return sessionOf({ ...valueFrom(made), id: out.id, lineage: Object.freeze({ ...out.lineage, extras }) })
}

/** Every error of a run is a RathError and carries the work so far; the innermost one knows most of it. */
function withSession(thrown: unknown, session: Session | undefined): RathError {
  const error =
    thrown instanceof RathError
      ? thrown
      : new RathError('run-failed', thrown instanceof Error ? thrown.message : String(thrown), {
          cause: thrown,
        })
  error.session ??= session
  return error
}

function budgetOf(outer: RunContext | undefined, own: CallOptions | undefined, options: CallOptions): Budget {
  const around = own?.budget ? new Budget(own.budget, outer?.budget) : outer?.budget
  return new Budget(options.budget, around)
}

/** What all of them allow. */
function narrowed(...policies: readonly (Policy | undefined)[]): Policy | undefined {
  const given = policies.filter(policy => policy !== undefined)
  return given.length > 0 ? given.reduce(narrow) : undefined
}

function checkInput(input: unknown, name: string): asserts input is SessionInput {
  if (input instanceof Session || input instanceof PendingSession) return
  throw new RathError(
    'invalid-argument',
    `${name} takes a Session or a pending one, not ${typeof input}; start one with Session.fromUserMessage('…').`,
  )
}
