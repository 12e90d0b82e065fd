import { cancelledError } from '../base/abort.ts'
import type { Json, JsonObject } from '../base/json.ts'
import type { Sandbox } from '../sandbox/spec.ts'
import type { ToolOutcome } from '../session/chunk.ts'
import type { Session } from '../session/session.ts'
import type { Store } from '../store/spec.ts'
import type { PreparedCall } from '../tool/dispatch.ts'
import type { Ruling } from '../tool/permission.ts'
import type { Effect, Tool } from '../tool/spec.ts'
import type { ToolRecord } from '../tool/tool-record.ts'
import { cleanDigest } from './clean-digest.ts'
import type { RunContext } from './context.ts'
import { type Asked, askerOf, insideOf } from './entry.ts'
import { perform, performCaptured } from './perform.ts'
import type { Place } from './place/place.ts'
import { answeringSession, runInEffect, scopeIn } from './scope.ts'
import type { TurnName } from './turn-files.ts'

/** One turn's calls at the door. */
export interface ToolTurn {
  readonly session: Session
  readonly context: RunContext
  readonly store: Store
  /** Aborted when the turn is. */
  readonly signal: AbortSignal
  readonly open?: (() => Promise<Place>) | undefined
}

/** Takes a call through the door: its outcome on record, or the tool. */
export async function passTool(call: PreparedCall, run: RunTool, turn: ToolTurn): Promise<ToolRecord> {
  const { tool } = call
  const { context, session } = turn
  const { tracing, places } = context.runtime
  // Before it is written down that the call is about to be made: one that is refused here was not cut off in anything.
  if (changes(tool) && !context.run.isReplayed) places.check({ session, run: context.runId })
  const asking = asked('tool', call, turn, {
    rule: ruleOf(tool, turn),
    urgent: changes(tool),
    facts: tool.sandboxed ? sandboxed : undefined,
  })
  const name = { session, asker: askerOf(asking) }
  let cutOff: ToolRecord | undefined
  try {
    const { value, isRecorded } = await context.run.door.pass(asking, async at => {
      const perform = () =>
        runInEffect(context, insideOf(at), async () => withSession(await work(call, run, turn, name)))
      const record = await (tracing ? tracing.tool(call, session, context, at, perform) : perform())
      if (!wasCancelled(record, context)) return { value: record as unknown as Json }
      cutOff = record
      throw cancelledError(context.signal)
    })
    if (isRecorded) tracing?.recorded()
    return value as unknown as ToolRecord
  } catch (error) {
    // It has no outcome for the journal: a resumed run decides by the tool's effect. The session of this one says how it ended.
    if (cutOff) return cutOff
    throw error
  }
}

/** Runs a tool for real. */
function work(call: PreparedCall, run: RunTool, turn: ToolTurn, name: TurnName): Promise<ToolRecord> {
  const isOnFiles = changes(call.tool) && turn.session.placement !== undefined
  return isOnFiles ? workOnFiles(call, run, turn, name) : perform(run, turn.open)
}

/** In a run that goes on, the files that belong to what is on record are put back first. */
async function workOnFiles(
  { tool }: PreparedCall,
  run: RunTool,
  { session, context, signal }: ToolTurn,
  name: TurnName,
): Promise<ToolRecord> {
  const { places } = context.runtime
  const visit = { session, run: context.runId, signal }
  const { run: current } = context
  const putAway = current.isRecorded
    ? await places.follow(visit, {
        // What it calls inside follows by itself, and knows better.
        isOuter: tool.resumable === true,
        isHalfWritten: current.wasCutOff,
        after: tree => current.filesAfter(name, tree),
      })
    : undefined
  const record = await performCaptured(run, places.capture(visit))
  return putAway === undefined ? record : { ...record, evidence: { ...record.evidence, putAway } }
}

/** The record of an agent's work leads to the session it worked on. */
function withSession(record: ToolRecord): ToolRecord {
  const session = answeringSession()
  return session === undefined ? record : { ...record, evidence: { ...record.evidence, session } }
}

type RunTool = (sandbox?: () => Promise<Sandbox>) => Promise<ToolOutcome>

/** Takes a ruling through the door: what policies and tools say may depend on files, which a replay does not look at. */
export async function passRuling(
  call: PreparedCall,
  rule: () => Promise<Ruling>,
  turn: ToolTurn,
): Promise<Ruling> {
  const passed = await turn.context.run.door.pass(
    asked('policy', call, turn, { rule: 'read', light: true, own: true }),
    async () => ({ value: (await rule()) as unknown as Json }),
  )
  return passed.value as unknown as Ruling
}

/** Whether a call may do more than look. */
export function changes(tool: Tool | undefined): boolean {
  return tool !== undefined && tool.effect !== 'pure' && tool.effect !== 'read'
}

/** What becomes of a call that was cut off. A command behind walls has changed the workspace at most. */
function ruleOf({ resumable, effect, sandboxed }: Tool, { session, context }: ToolTurn): Effect {
  if (resumable) return 'idempotent'
  if (effect !== 'external' || !sandboxed || session.placement === undefined) return effect
  const { backend: name, spec } = session.placement
  const backend = context.runtime.places.backends.get(name)
  const { network, fileWrite } = backend.capabilities.enforced
  return network && fileWrite && !backend.reachesOut?.(spec) ? 'workspace' : effect
}

/** What a call is, for the journal; the ids that providers invent are no part of it. */
function toolRequest({ tool, args, index }: PreparedCall, store: Store): Json {
  const schema = cleanDigest(tool.parameters, store)
  // Its keys in order: that is half of writing it canonically.
  return { args, effect: tool.effect, place: index, schema, tool: tool.name }
}

const sandboxed: JsonObject = Object.freeze({ sandboxed: true })

function asked(
  kind: string,
  call: PreparedCall,
  { session, context, signal, store }: ToolTurn,
  { rule, urgent, light, own, facts }: Pick<Asked, 'rule' | 'urgent' | 'light' | 'own' | 'facts'>,
): Asked {
  return {
    kind,
    session,
    request: toolRequest(call, store),
    sample: scopeIn(context).sample,
    rule,
    by: context.by,
    id: call.call.id,
    facts,
    urgent,
    light,
    own,
    isCancelled: () => signal.aborted,
  }
}

/** Told to stop with the whole call, and not by the time of a budget, which is an outcome. */
function wasCancelled({ outcome }: ToolRecord, context: RunContext): boolean {
  return context.aborted && outcome.kind === 'error' && outcome.error === 'cancelled'
}
