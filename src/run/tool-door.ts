import { cancelledError } from '../base/abort.ts'
import { RathError } from '../base/errors.ts'
import type { Json, JsonObject } from '../base/json.ts'
import type { Sandbox } from '../sandbox/spec.ts'
import type { ChunkInput, ToolOutcome } from '../session/chunk.ts'
import type { Session } from '../session/session.ts'
import type { Store } from '../store/spec.ts'
import type { CallRecord, PreparedCall } from '../tool/dispatch.ts'
import type { Ruling } from '../tool/permission.ts'
import type { Effect, Tool } from '../tool/spec.ts'
import type { ToolEvidence, ToolRecord } from '../tool/tool-record.ts'
import type { RunContext } from './context.ts'
import { type Asked, askerOf, cleanDigest, insideOf, type Lending, type Outcome, type Seen } from './entry.ts'
import { spendInside, watchInside } from './inside.ts'
import type { Capture } from './place/capture.ts'
import type { Place } from './place/place.ts'
import type { Visit } from './place/places.ts'
import { Sight, stillSeen } from './place/sight.ts'
import type { TurnName } from './replay/recorded-files.ts'
import { filesWereSeen, runInEffect, sawFiles, scopeIn } from './scope.ts'

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
  const asking = {
    ...asked('tool', call, turn, {
      rule: ruleOf(tool, turn),
      urgent: changes(tool),
      facts: tool.sandboxed ? sandboxed : undefined,
      // An agent is not taken as a whole: what is done inside it is, as far as that still holds.
      own: tool.resumable,
    }),
    borrow: (outcome: Outcome, lender: Lending) => borrowTool(outcome, lender, tool, turn),
  }
  const name = { session, asker: askerOf(asking) }
  let cutOff: ToolRecord | undefined
  try {
    const { value, isRecorded, sees, at, inside } = await context.run.door.pass(asking, async at => {
      const sight = new Sight()
      let seenInside = false
      const perform = () =>
        runInEffect(context, insideOf(at), () =>
          watchInside(context, call.call.id, async () => {
            const record = await work(call, run, turn, name, sight)
            seenInside = filesWereSeen()
            return record
          }),
        )
      const { result: record, inside } = await (tracing
        ? tracing.tool(call, session, context, at, perform)
        : perform())
      const sees = seenInside ? unknownFiles : sight.seen(record.evidence?.before)
      const known = Object.keys(inside).length > 0 && { inside }
      if (!wasCancelled(record, context))
        return { value: record as unknown as Json, ...known, ...(sees && { sees }) }
      cutOff = { ...record, ...known }
      throw cancelledError(context.signal)
    })
    if (sees) sawFiles()
    if (isRecorded) {
      tracing?.recorded()
      spendInside(inside?.usage)
    }
    return {
      ...(value as unknown as ToolRecord),
      ...(at !== undefined && { at }),
      ...(inside && { inside }),
    }
  } catch (error) {
    // It has no outcome for the journal: a resumed run decides by the tool's effect. The session of this one says how it ended.
    if (cutOff) return cutOff
    throw error
  }
}

/** Runs a tool for real. */
function work(
  call: PreparedCall,
  run: RunTool,
  turn: ToolTurn,
  name: TurnName,
  sight: Sight,
): Promise<ToolRecord> {
  const isOnFiles = changes(call.tool) && turn.session.placement !== undefined
  if (isOnFiles) return workOnFiles(call, run, turn, name, sight)
  const { open } = turn
  const begun = open && (() => startOver(turn).then(open))
  return perform(run, begun, sight)
}

/** In a run that goes on, the files that belong to what is on record are put back first. */
async function workOnFiles(
  { tool }: PreparedCall,
  run: RunTool,
  turn: ToolTurn,
  name: TurnName,
  sight: Sight,
): Promise<ToolRecord> {
  const { context } = turn
  const { places } = context.runtime
  const visit = visitOf(turn)
  const { run: current } = context
  if (tool.resumable !== true) await startOver(turn)
  const putAway = current.followsFiles
    ? await places.follow(visit, {
        // What it calls inside follows by itself, and knows better.
        isOuter: tool.resumable === true,
        isHalfWritten: current.wasCutOff,
        after: tree => current.filesAfter(name, tree),
      })
    : undefined
  const record = await performCaptured(run, places.capture(visit), sight)
  return putAway === undefined ? record : { ...record, evidence: { ...record.evidence, putAway } }
}

/** Depends on files that nobody can look at again in the same way. */
const unknownFiles: readonly Seen[] = Object.freeze([{ op: 'tree', is: null }])

/**
 * The outcome of a call in another run, if what it saw is still so; its files are put where it had put them. A call that only wrote files
 * also counts when they are there already as it left them.
 */
async function borrowTool(
  outcome: Outcome,
  lender: Lending,
  tool: Tool,
  turn: ToolTurn,
): Promise<Outcome | undefined> {
  const { session, context } = turn
  const record = outcome.value as unknown as ToolRecord
  const { evidence } = record
  if (outcome.sees === undefined) return lender.rule === 1 && session.placement ? undefined : outcome
  const { placement } = session
  if (placement === undefined || evidence?.ranOn?.backend !== placement.backend) return undefined
  const { places } = context.runtime
  const visit = visitOf(turn)
  await startOver(turn)
  const place = await places.open(visit)
  const { files } = place.sandbox
  const now = () => places.look(visit)
  const { before, tree } = evidence
  if (!changes(tool)) return (await stillSeen(outcome.sees, files, now)) ? outcome : undefined
  const found = await now()
  if (before === undefined || tree === undefined || found === undefined) return undefined
  if (before === found) {
    if (tree !== found) await places.restore(visit, tree)
    return outcome
  }
  if (evidence.moreFiles || outcome.sees.some(({ op }) => op === 'tree')) return undefined
  const wrote = new Set(evidence.files?.map(({ path }) => path))
  const differs = await place.files?.changes(tree, found).catch(() => undefined)
  if (differs === undefined || differs.some(({ path }) => wrote.has(path))) return undefined
  const others = outcome.sees.filter(look => !('path' in look && wrote.has(place.relative(look.path) ?? '')))
  if (!(await stillSeen(others, files, now))) return undefined
  const { files: _, ...rest } = evidence
  const there = { ...record, evidence: { ...rest, before: found, tree: found } }
  return { ...outcome, value: there as unknown as Json } as Outcome
}

/**
 * Before a run that borrows first looks at the files of a placement: if they are as the other run left them, they become what it began with. Else
 * somebody has changed them since, and they are taken as they are.
 */
function startOver(turn: ToolTurn): Promise<void> {
  const { run, runtime } = turn.context
  const { places } = runtime
  return run.startOver(turn.session, async ({ began, left }) => {
    const root = places.inPlacedFolder(visitOf(turn))
    if ((await places.look(root)) !== left) return
    await places.restore(root, began)
    turn.context.notes.push({ kind: 'note', name: 'files-put-away', data: { tree: left } })
  })
}

function visitOf({ session, context, signal }: ToolTurn): Visit {
  return { session, run: context.runId, signal }
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

/** What a call leaves on the record: what was asked of people, what was found of the files, what its own code did, and its result. */
export function toolChunks({
  call,
  args,
  outcome,
  durationMs,
  evidence,
  at,
  inside = {},
  approvals,
}: CallRecord): ChunkInput[] {
  const { sessions, usage, notes = [] } = inside
  return [
    ...approvals,
    ...(evidence ? filesFound(evidence) : []),
    ...notes,
    {
      kind: 'tool-result',
      callId: call.id,
      tool: call.name,
      args,
      outcome,
      durationMs,
      ...(at !== undefined && { at }),
      ...(sessions && { sessions }),
      ...(usage && { usage }),
      ...(evidence && chunkFields(evidence)),
    },
  ]
}

/** What the chunk says of where a call ran. */
function chunkFields({
  ranOn,
  before,
  tree,
  files,
  moreFiles,
  session,
}: ToolEvidence): Omit<ToolEvidence, 'session' | 'moreFiles'> & { extras?: JsonObject } {
  const extras = {
    ...(moreFiles !== undefined && { moreFiles }),
    ...(session !== undefined && { session }),
  }
  return {
    ...(ranOn && { ranOn }),
    ...(before !== undefined && { before }),
    ...(tree !== undefined && { tree }),
    ...(files && { files }),
    ...(Object.keys(extras).length > 0 && { extras }),
  }
}

/** What was found of the files besides what the call did to them. */
function filesFound({ drift, putAway, problem }: ToolEvidence): ChunkInput[] {
  return [
    ...(putAway === undefined
      ? []
      : [{ kind: 'note', name: 'files-put-away', data: { tree: putAway } } as const]),
    ...(drift ? [{ kind: 'note', name: 'drift', data: drift as unknown as Json } as const] : []),
    ...(problem === undefined
      ? []
      : [
          {
            kind: 'error',
            error: 'files-not-kept',
            message: `The files could not be kept: ${problem}`,
          } as const,
        ]),
  ]
}

type Run = (sandbox?: () => Promise<Sandbox>) => Promise<ToolOutcome>

/** Runs a tool and tells what its chunk says of it: the outcome, how long it took, and where it ran if it asked for a place. */
async function perform(
  run: Run,
  open: (() => Promise<Place>) | undefined,
  sight: Sight,
): Promise<ToolRecord> {
  let place: Place | undefined
  const refused = new Refusal()
  const watched =
    open &&
    (async () => {
      place = await refused.kept(open())
      return sight.watch(place.sandbox)
    })
  const start = performance.now()
  const outcome = await run(watched)
  const durationMs = performance.now() - start
  refused.throw()
  if (place === undefined) return { outcome, durationMs }
  const { backend, id, cwd } = place.sandbox
  const folder = place.folder !== undefined && { folder: place.folder }
  return { outcome, durationMs, evidence: { ranOn: { backend, id, cwd, ...folder } } }
}

/** The same for one that may change files, and what it changed. */
async function performCaptured(run: Run, capture: Capture, sight: Sight): Promise<ToolRecord> {
  const start = performance.now()
  const refused = new Refusal()
  const outcome = await capture.run(() => run(async () => sight.watch(await refused.kept(capture.sandbox()))))
  const durationMs = performance.now() - start
  refused.throw()
  const evidence = await evidenceOf(capture)
  return Object.keys(evidence).length === 0 ? { outcome, durationMs } : { outcome, durationMs, evidence }
}

/** A folder that the session did not begin in is no news for the model: the run stops, whatever the tool made of it. */
class Refusal {
  #error: RathError | undefined

  async kept<T>(opening: Promise<T>): Promise<T> {
    try {
      return await opening
    } catch (error) {
      if (error instanceof RathError && error.code === 'workspace-elsewhere') this.#error = error
      throw error
    }
  }

  throw(): void {
    if (this.#error) throw this.#error
  }
}

/** The outcome stands, whatever became of the files: that they could not be kept is on the record beside it. */
async function evidenceOf(capture: Capture): Promise<ToolEvidence> {
  try {
    return await capture.end()
  } catch (error) {
    return { problem: error instanceof Error ? error.message : String(error) }
  }
}
