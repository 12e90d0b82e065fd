import type { Digest } from '../../base/digest.ts'
import { RathError } from '../../base/errors.ts'
import { collect } from '../../run/graph/collect.ts'
import {
  changesOf,
  type Event,
  type History,
  historyOf,
  inOrderOfSteps,
  type Line,
} from '../../run/graph/history.ts'
import type { Material } from '../../run/graph/rows.ts'
import type { SandboxCapabilities } from '../../sandbox/spec.ts'
import { changesBetween } from '../../sandbox/workspace/changes.ts'
import { commonBranch } from '../../session/branch.ts'
import { backwards, foldAt, previousOf } from '../../session/chain.ts'
import type { Chunk } from '../../session/chunk.ts'
import { Session, valueFrom } from '../../session/session.ts'
import type { Store } from '../../store/spec.ts'
import { openKeptFiles } from '../kept-files.ts'
import type { SignatureReport } from '../signature.ts'
import { branchesOf } from './branches.ts'
import { type CutLimits, Cutter } from './cutter.ts'
import type { Dossier, FinalPatch, Integrity, SessionNode, Subject } from './dossier.ts'
import { approvalsOf, effectsOf, failuresOf, filesIn, memoryOf, toolsOf } from './sections.ts'
import { promptsIn, spendingOf } from './spending.ts'
import { statementsOf } from './statements.ts'
import { stepsOf } from './steps.ts'
import { fileStep } from './tool-step.ts'
import { visibleLine } from './visible.ts'

export interface DossierOptions {
  /** When it is made, in milliseconds since the epoch; now by default. */
  readonly at?: number
  /** Versions and machine, for the reader: `{ openrath: '0.1.0', node: 'v24', platform: 'linux x64' }`. Nothing by default. */
  readonly environment?: Readonly<Record<string, string>>
  /** The folder where the runtime has kept files of workspaces: with them the final patch is that of the files themselves. */
  readonly workspaces?: string
  /** The backends that tools ran on, to say what walls they had. */
  readonly sandboxes?: readonly { readonly name: string; readonly capabilities: SandboxCapabilities }[]
  /** Signatures over a bundle of this record, checked. */
  readonly signatures?: readonly SignatureReport[]
  readonly limits?: CutLimits
}

/**
 * What happened in a run, by its id, or around a session, by id, prefix or tag. Reads the store and changes nothing. Time and memory are
 * linear in the chunks of the sessions it tells of.
 */
export async function dossierOf(
  store: Store,
  runOrSession: string | Session,
  options: DossierOptions = {},
): Promise<Dossier> {
  const name = runOrSession instanceof Session ? runOrSession.id : runOrSession
  return dossierFrom({ ...(await collect(store, name)), clean: text => store.clean(text) }, options)
}

/** The same from sessions alone: the last of them is the one that all led to, unless another is named. */
export async function dossierOfSessions(
  sessions: readonly Session[],
  options: DossierOptions & { readonly final?: string } = {},
): Promise<Dossier> {
  const { final: id } = options
  const final = id === undefined ? sessions.at(-1) : sessions.find(session => session.id === id)
  if (!final)
    throw new RathError(
      'unknown-session',
      `There is no session ${id ?? 'at all'} to make a dossier of among those given.`,
    )
  const known = new Set(sessions.map(session => session.id))
  const missing = sessions.flatMap(({ lineage }) => lineage.parents.filter(parent => !known.has(parent)))
  return dossierFrom({ final, sessions, missing: [...new Set(missing)] }, options)
}

async function dossierFrom(material: Material, options: DossierOptions = {}): Promise<Dossier> {
  const { at = Date.now(), environment = {}, workspaces, sandboxes = [], signatures = [], limits } = options
  const { final, journal, prompts } = material
  const history = historyOf(material)
  const { events } = history
  const cutter = new Cutter(limits, material.clean)
  const integrity = integrityOf(history, material, signatures)
  const tools = toolsOf(events, journal)
  const approvals = approvalsOf(events, cutter)
  const spending = spendingOf(history, material)
  const effects = effectsOf(events, cutter)
  const patch = await patchOf(final, events, cutter, workspaces)
  const capabilities = new Map(sandboxes.map(backend => [backend.name, backend.capabilities]))
  const dossier: Dossier = {
    format: 'openrath/dossier',
    version: 1,
    madeAt: at,
    environment,
    subject: subjectOf(history, material),
    task: taskIn(final).map(chunk => cutter.keep(chunk.text)),
    answer: final.text === '' ? null : cutter.keep(final.text),
    patch,
    sessions: nodesOf(history, material),
    branches: branchesOf(history, material),
    steps: stepsOf(events, cutter),
    tools,
    files: filesIn(events),
    effects,
    approvals,
    memory: memoryOf(events, cutter),
    failures: failuresOf(events, journal),
    spending,
    prompts: promptsIn(events, prompts, cutter),
    integrity,
    statements: statementsOf({
      material,
      events,
      integrity,
      tools,
      effects,
      approvals,
      patch,
      spending,
      capabilities,
    }),
  }
  cutter.settle()
  return dossier
}

/** What people asked before the first answer; what was only said on branches that were merged, such as an item of a `map`, is part of the work. */
function taskIn(final: Session): Chunk<'user'>[] {
  const asked: Chunk<'user'>[] = []
  for (const chunk of final.chunks) {
    if (chunk.kind === 'assistant') break
    if (chunk.kind === 'user') asked.push(chunk)
  }
  const task = asked.filter(({ branch = '' }) => commonBranch([branch, final.branch]) === branch)
  return task.length > 0 ? task : asked
}

function subjectOf({ events }: History, { final, run }: Material): Subject {
  let startedAt = Number.POSITIVE_INFINITY
  let endedAt = Number.NEGATIVE_INFINITY
  for (const { chunk } of events) {
    startedAt = Math.min(startedAt, chunk.at)
    endedAt = Math.max(endedAt, chunk.at)
  }
  const times =
    events.length > 0 ? { startedAt, endedAt } : { startedAt: final.lineage.at, endedAt: final.lineage.at }
  const workflow = run?.data.workflow
  return {
    kind: run ? 'run' : 'session',
    id: run?.id ?? final.id,
    session: final.id,
    head: final.head ?? null,
    title: titleOf(taskIn(final).at(-1)?.text ?? ''),
    ...(run && { status: run.status }),
    ...(typeof workflow === 'string' && { workflow }),
    ...times,
    chunks: events.length,
  }
}

function titleOf(task: string): string {
  const line = visibleLine(
    task.split('\n').find(text => text.trim() !== '') ?? 'A session without a task',
  ).trim()
  return line.length > 110 ? `${line.slice(0, 109).trimEnd().toWellFormed()}…` : line
}

function integrityOf(
  history: History,
  material: Material,
  signatures: readonly SignatureReport[],
): Integrity {
  const { checked, problem, lineOf } = history
  return {
    checked,
    ok: problem === undefined,
    ...(problem && { problem }),
    heads: tipsOf(material).map(session => ({
      session: session.id,
      branch: (lineOf.get(session.id) as Line).index,
      head: session.head as string,
    })),
    signatures,
    missing: material.missing ?? [],
  }
}

/** The sessions whose histories cover all others, the final one first. */
function tipsOf({ final, sessions }: Material): Session[] {
  const covered = new Set<string>()
  const tips: Session[] = []
  for (const session of [final, ...sessions.toReversed()]) {
    const { head } = session
    if (head === undefined || covered.has(head)) continue
    tips.push(session)
    for (const chunk of backwards(valueFrom(session).tip)) {
      if (covered.has(chunk.id)) break
      covered.add(chunk.id)
    }
  }
  return tips
}

/** The sessions of the graph in the order of their steps, each with those it went on from. */
function nodesOf(history: History, { sessions, final }: Material): SessionNode[] {
  const own = new Map<string, Event[]>()
  for (const event of history.events) {
    const known = own.get(event.session.id)
    if (known) known.push(event)
    else own.set(event.session.id, [event])
  }
  // The result may be the session of a call whose last steps are those of a call inside it.
  const result = own.has(final.id) ? final.id : (tipOf(final, history)?.session.id ?? final.id)
  const nodes = sessions.map(session => {
    const { parents, operation, at, by, label } = session.lineage
    const events = own.get(session.id) ?? []
    return {
      id: session.id,
      parents,
      operation,
      at,
      ...(by !== undefined && { by }),
      ...(label !== undefined && { label }),
      branch: (history.lineOf.get(session.id) as Line).index,
      head: session.head ?? null,
      length: session.length,
      after: [...new Set(beforeIt(session, events, history))],
      steps: events.length,
      ...(events[0] && { firstStep: events[0].n }),
      ...(session.id === result && { isFinal: true as const }),
    }
  })
  return inOrderOfSteps(nodes, history, sessions)
}

function beforeIt(session: Session, events: readonly Event[], history: History): string[] {
  const [first] = events
  if (first === undefined) {
    const tip = tipOf(session, history)
    return tip ? [tip.session.id] : []
  }
  const before = previousOf(first.chunk)
  const from = before && history.byChunk.get(before.id)?.session.id
  const merged = events.flatMap(({ chunk }) =>
    chunk.kind === 'merge'
      ? chunk.branches.flatMap(({ head }) => {
          const tip = head === null ? undefined : history.byChunk.get(head)
          return tip && tip.session.id !== session.id ? [tip.session.id] : []
        })
      : [],
  )
  return [...(from === undefined ? [] : [from]), ...merged]
}

function tipOf({ head }: Session, { byChunk }: History): Event | undefined {
  return head === undefined ? undefined : byChunk.get(head)
}

/** What became of the files: between the first tree and the last where both can be read, else the recorded patches one after the other. */
async function patchOf(
  final: Session,
  events: readonly Event[],
  cutter: Cutter,
  workspaces?: string,
): Promise<FinalPatch> {
  const from = firstTree(final)
  const to = foldAt(valueFrom(final).tip).tree
  const trees = { ...(from !== undefined && { from }), ...(to !== undefined && { to }) }
  if (from !== undefined && to !== undefined && workspaces !== undefined) {
    try {
      const objects = await openKeptFiles(workspaces)
      const changes = await changesBetween(objects, from, to, { patch: 100_000, patches: 1_000_000 })
      return { source: 'trees', ...trees, files: changes.map(file => fileStep(file, cutter)) }
    } catch (error) {
      if (!(error instanceof RathError)) throw error
      return { ...recorded(events, cutter), ...trees, note: `The trees could not be read: ${error.message}` }
    }
  }
  return {
    ...recorded(events, cutter),
    ...trees,
    ...(from !== undefined && { note: 'The files themselves were not at hand.' }),
  }
}

function recorded(events: readonly Event[], cutter: Cutter): Pick<FinalPatch, 'source' | 'files'> {
  const files = changesOf(events)
    .filter(({ event }) => event.inFinal)
    .map(({ event, file }) => ({ ...fileStep(file, cutter), step: event.n }))
  return { source: files.length > 0 ? 'recorded' : 'none', files }
}

/** The files as the first call, or the placement, found them. */
function firstTree(session: Session): Digest | undefined {
  for (const chunk of session.chunks) {
    if (chunk.kind === 'placement' && chunk.workspace?.tree !== undefined) return chunk.workspace.tree
    if (chunk.kind === 'tool-result' && chunk.before !== undefined) return chunk.before
  }
  return undefined
}
