import { readlinkSync, realpathSync } from 'node:fs'
import { RathError } from '../base/errors.ts'
import { asJson, type JsonObject } from '../base/json.ts'
import { realPathIn, viewOf } from '../sandbox/host/real-path.ts'
import type { Sandbox } from '../sandbox/spec.ts'
import type { ChunkInput } from '../session/chunk.ts'
import type { Session } from '../session/session.ts'
import type { Store } from '../store/spec.ts'
import type { PathFiles } from '../tool/policy/path-root.ts'
import type { PreparedCall } from '../tool/prepare.ts'
import type { Effect, Tool } from '../tool/spec.ts'
import type { ToolEvidence, ToolRecord } from '../tool/tool-record.ts'
import type { CallRecord, Ruling, RunTool } from '../tool/turn.ts'
import type { RunContext } from './context.ts'
import { effect, errorOf, valueIn } from './effect.ts'
import { askerOf, cleanDigest, type Lending, type Outcome, type Seen, type ToolAsked } from './entry.ts'
import { filesWereSeen, scopeIn } from './frame.ts'
import type { Capture } from './place/capture.ts'
import type { Place } from './place/place.ts'
import type { Visit } from './place/places.ts'
import { Sight, stillSeen } from './place/sight.ts'

/** What the calls of one turn are made from. */
export interface ToolTurn {
  readonly session: Session
  readonly context: RunContext
  readonly store: Store
  /** Aborted when the turn is. */
  readonly signal: AbortSignal
  open(): Promise<Place>
}

/** Makes a call: its outcome on record, or the tool. */
export async function passTool(call: PreparedCall, run: RunTool, turn: ToolTurn): Promise<ToolRecord> {
  const { tool } = call
  const { context, session, signal, store } = turn
  // Before it is written down that the call is about to be made: one that is refused here was not cut off in anything.
  if (changes(tool) && !context.run.isReplayed) context.runtime.places.check({ session, run: context.runId })
  const { sample } = scopeIn(context)
  const { value, error, at, inside } = await effect(
    context,
    {
      kind: 'tool',
      session,
      request: toolRequest(call, store),
      rule: ruleOf(tool, turn),
      id: call.call.id,
      facts: tool.sandboxed ? sandboxed : undefined,
      urgent: changes(tool),
      // An agent is not taken as a whole: what is done inside it is, as far as that still holds.
      own: tool.resumable,
      signal,
      nests: call.call.id,
      borrow: (outcome, lender) => borrowTool(outcome, lender, tool, turn),
      trace: (tracing, at, work) => tracing.tool(call, session, context, at, work),
    },
    async () => {
      const sight = new Sight()
      const record = await work(call, run, turn, sample, sight)
      const sees = filesWereSeen() ? unknownFiles : sight.seen(record.evidence?.before)
      // Cancelled with the whole call, it has no outcome for the journal: a resumed run decides by the tool's effect.
      const isCutOff = wasCancelled(record, context)
      return { value: record, isCutOff, ...(sees && { sees }) }
    },
  )
  if (value === undefined) throw errorOf(error)
  return { ...value, ...(at !== undefined && { at }), ...(inside && { inside }) }
}

/** Runs a tool for real. */
function work(
  call: PreparedCall,
  run: RunTool,
  turn: ToolTurn,
  sample: string,
  sight: Sight,
): Promise<ToolRecord> {
  const isOnFiles = changes(call.tool) && turn.session.placement !== undefined
  if (isOnFiles) return workOnFiles(call, run, turn, sample, sight)
  return perform(run, () => startOver(turn).then(() => turn.open()), sight)
}

/** In a run that goes on, the files that belong to what is on record are put back first. */
async function workOnFiles(
  { tool }: PreparedCall,
  run: RunTool,
  turn: ToolTurn,
  sample: string,
  sight: Sight,
): Promise<ToolRecord> {
  const { context, session } = turn
  const { places } = context.runtime
  const visit = visitOf(turn)
  const { run: current } = context
  if (tool.resumable !== true) await startOver(turn)
  const putAway = current.followsFiles
    ? await places.follow(visit, {
        // What it calls inside follows by itself, and knows better.
        isOuter: tool.resumable === true,
        isHalfWritten: current.wasCutOff,
        after: tree =>
          current.filesAfter({ session, asker: askerOf({ by: context.by, sample, session }) }, tree),
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
  outcome: Outcome<'tool'>,
  lender: Lending,
  tool: Tool,
  turn: ToolTurn,
): Promise<Outcome<'tool'> | undefined> {
  const { session, context } = turn
  const { value: record, ...about } = outcome
  if (record === undefined) return undefined
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
    if (tree !== found) await places.restore(visit, tree, evidence.packs)
    return outcome
  }
  if (evidence.moreFiles || outcome.sees.some(({ op }) => op === 'tree')) return undefined
  const wrote = new Set(evidence.files?.map(({ path }) => path))
  const differs = await place.files?.changes(tree, found).catch(() => undefined)
  if (differs === undefined || differs.some(({ path }) => wrote.has(path))) return undefined
  const others = outcome.sees.filter(look => !('path' in look && wrote.has(place.relative(look.path) ?? '')))
  if (!(await stillSeen(others, files, now))) return undefined
  const { files: _, packs: __, ...rest } = evidence
  const packs = await places.send(session, [found])
  const there = { ...record, evidence: { ...rest, before: found, tree: found, ...(packs && { packs }) } }
  return { ...about, value: there, error: undefined }
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

/** Takes a ruling through the door: what policies and tools say may depend on files, which a replay does not look at. */
export async function passRuling(
  call: PreparedCall,
  rule: () => Promise<Ruling>,
  turn: ToolTurn,
): Promise<Ruling> {
  const { context, session, signal, store } = turn
  const passed = await effect(
    context,
    {
      kind: 'policy',
      session,
      request: toolRequest(call, store),
      rule: 'read',
      id: call.call.id,
      light: true,
      own: true,
      signal,
    },
    async () => ({ value: await rule() }),
  )
  return valueIn(passed)
}

/** Whether a call may do more than look. */
export function changes(tool: Tool | undefined): boolean {
  return tool !== undefined && tool.effect !== 'pure' && tool.effect !== 'read'
}

/** What becomes of a call that was cut off. A command behind walls has changed the workspace at most. */
function ruleOf({ resumable, effect: rule, sandboxed }: Tool, { session, context }: ToolTurn): Effect {
  if (resumable) return 'idempotent'
  if (rule !== 'external' || !sandboxed || session.placement === undefined) return rule
  const { backend: name, spec } = session.placement
  const backend = context.runtime.places.backends.get(name)
  const { network, fileWrite } = backend.capabilities.enforced
  return network && fileWrite && !backend.reachesOut?.(spec) ? 'workspace' : rule
}

/** What a call is, for the journal; the ids that providers invent are no part of it. */
function toolRequest({ tool, args, index }: PreparedCall, store: Store): ToolAsked {
  const schema = cleanDigest(tool.parameters, store)
  // Its keys in order: that is half of writing it canonically.
  return { args, effect: tool.effect, place: index, schema, tool: tool.name }
}

const sandboxed: JsonObject = Object.freeze({ sandboxed: true })

/** Cancelled with the whole call. The end of a budget's time is an outcome. */
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
  packs,
  moreFiles,
  session,
}: ToolEvidence): Omit<ToolEvidence, 'session' | 'moreFiles' | 'packs'> & { extras?: JsonObject } {
  const extras = {
    ...(packs && packs.length > 0 && { packs }),
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
    ...(drift ? [{ kind: 'note', name: 'drift', data: asJson(drift) } as const] : []),
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

/** Runs a tool and tells what its chunk says of it: the outcome, how long it took, and where it ran if it asked for a place. */
async function perform(run: RunTool, open: () => Promise<Place>, sight: Sight): Promise<ToolRecord> {
  let place: Place | undefined
  const refused = new Refusal()
  const start = performance.now()
  const outcome = await run(async () => {
    place = await refused.kept(open())
    return sight.watch(place.sandbox)
  })
  const durationMs = performance.now() - start
  refused.throw()
  if (place === undefined) return { outcome, durationMs }
  const { backend, id, cwd } = place.sandbox
  const folder = place.folder !== undefined && { folder: place.folder }
  return { outcome, durationMs, evidence: { ranOn: { backend, id, cwd, ...folder } } }
}

/** The same for one that may change files, and what it changed. */
async function performCaptured(run: RunTool, capture: Capture, sight: Sight): Promise<ToolRecord> {
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

/** The workspace as path rules see it; undefined for one that this machine cannot look into. */
export function pathFiles({ hostPath, cwd }: Sandbox): PathFiles | undefined {
  if (hostPath === undefined) return undefined
  const view = viewOf(hostPath)
  // Without another thread, the way to which takes longer than the answer.
  return {
    folder: cwd,
    realpath: async path => (view === undefined ? realpathSync.native(path) : realPathIn(view.root, path)),
    readlink: async path => readlinkSync((view?.root ?? '') + path),
  }
}
