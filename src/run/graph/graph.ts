import type { Digest } from '../../base/digest.ts'
import { previousOf } from '../../session/chain.ts'
import { type GraphNode, type SessionGraph, sessionGraph } from '../../session/graph.ts'
import type { Session } from '../../session/session.ts'
import type { RunRow, SessionRow, Store } from '../../store/spec.ts'
import { sessionsMade } from '../entry.ts'
import { promptId } from '../prompt.ts'
import { collect, collectAround, withoutMadeAgain } from './collect.ts'
import { type Event, type History, historyOf, inOrderOfSteps } from './history.ts'
import { type Material, rowsOf, runOf } from './rows.ts'

/** The graph of a run, a session or a store, and whether there were more sessions than were looked at. */
export interface FoundGraph {
  readonly graph: SessionGraph
  readonly isCut: boolean
}

/**
 * The sessions of a run by its id; a session by id, prefix or tag with what it came from and what came of it; or `all` of a store. Each has
 * those whose work it went on from as its parents: by lineage the result of a workflow comes from its input alone; here it comes from the
 * last step inside, and what took in branches from those branches. Steps that were never kept are left out, and what came of them comes from
 * the nearest one that was. A run or a session costs what is connected with it, whatever else the store holds.
 */
export async function graphOf(store: Store, name: string): Promise<FoundGraph> {
  if (name === 'all') return { graph: sessionGraph(await allNodes(store)), isCut: false }
  const run = await runOf(store, name)
  const material = run ? await collect(store, name) : await collectAround(store, name)
  const parents = parentsOf(material)
  const nodes = run ? ofRun(material, parents) : around(material.final.id, nodesOf(material, parents))
  return { graph: sessionGraph(nodes), isCut: material.more === true }
}

/** The input of a run and every session made of it. */
function ofRun(material: Material, parents: Parents): GraphNode[] {
  const before = ancestorsOf(material.run?.input, parents)
  return nodesOf(material, parents).flatMap(({ id, lineage }) =>
    before.has(id)
      ? []
      : [{ id, lineage: { ...lineage, parents: lineage.parents.filter(parent => !before.has(parent)) } }],
  )
}

function nodesOf(material: Material, parents: Parents): GraphNode[] {
  const lineages = new Map(material.sessions.map(({ id, lineage }) => [id, lineage]))
  return [...parents].flatMap(([id, from]) => {
    const lineage = lineages.get(id)
    return lineage ? [{ id, lineage: { ...lineage, parents: from } }] : []
  })
}

/** A session with everything that it came from and that came of it, and what was made inside any of that. */
function around(id: string, nodes: readonly GraphNode[]): GraphNode[] {
  const byId = new Map(nodes.map(node => [node.id, node]))
  const below = new Map<string, string[]>()
  const inside = new Map<string, string[]>()
  for (const { id: child, lineage } of nodes) {
    for (const parent of lineage.parents) addTo(below, parent, child)
    const { session } = (lineage.extras.inside ?? {}) as { session?: unknown }
    if (typeof session === 'string') addTo(inside, session, child)
  }
  const parentsIn = (here: string) => byId.get(here)?.lineage.parents ?? []
  // What was merged into a descendant belongs to its story, so the ancestors of all of them do.
  const wanted = reach(
    reach([id], here => below.get(here) ?? []),
    parentsIn,
  )
  for (let size = -1; wanted.size > size; ) {
    size = wanted.size
    const linked = [...wanted].flatMap(here => inside.get(here) ?? [])
    for (const here of reach(linked, parentsIn)) wanted.add(here)
  }
  return nodes.filter(node => wanted.has(node.id))
}

function reach(from: Iterable<string>, next: (id: string) => readonly string[]): Set<string> {
  const seen = new Set(from)
  for (const here of seen) for (const neighbour of next(here)) seen.add(neighbour)
  return seen
}

function addTo<T>(lists: Map<string, T[]>, key: string, value: T): void {
  const list = lists.get(key)
  if (list) list.push(value)
  else lists.set(key, [value])
}

function ancestorsOf(id: string | null | undefined, parents: Parents): Set<string> {
  const ancestors = new Set(parents.get(id ?? ''))
  for (const here of ancestors) for (const parent of parents.get(here) ?? []) ancestors.add(parent)
  return ancestors
}

/** The parents of each session, in an order in which they are before it. */
type Parents = ReadonlyMap<string, readonly string[]>

/** No session is given a parent that is behind it in one order, so that none can come from itself. */
function parentsOf(material: Material): Parents {
  const origins = inOrderOfEnds(originsOf(material))
  const parents = new Map<string, readonly string[]>()
  for (const { session, from } of origins.values()) {
    const found = from.flatMap(id => {
      const other = endedBefore(id, origins, parents)
      return other ? nearest(session, other, parents, origins) : []
    })
    // Went back behind everything here, or has no history.
    const { parents: named } = session.lineage
    parents.set(session.id, found.length > 0 ? [...new Set(found)] : named.filter(id => parents.has(id)))
  }
  return parents
}

interface Origin {
  readonly session: Session
  /** Whose work it began behind. */
  readonly begin?: string
  /** The same, and what it took in or waited for on its way. */
  readonly from: readonly string[]
}

/** In the order in which they began. */
function originsOf(material: Material): Origin[] {
  const history = historyOf(material)
  const sessions = new Map(material.sessions.map(session => [session.id, session]))
  const own = Map.groupBy(history.events, event => event.session.id)
  return inOrderOfSteps(material.sessions, history, material.sessions).map(({ id }) => {
    const session = sessions.get(id) as Session
    const [first, ...others] = own.get(id) ?? []
    if (first === undefined) {
      const begin = passedOn(session, sessions) ?? ownerOf(session.head, history)
      return { session, ...(begin !== undefined && { begin }), from: begin === undefined ? [] : [begin] }
    }
    const begin = ownerOf(previousOf(first.chunk)?.id, history)
    const from = [first, ...others].flatMap(event => sourcesOf(event, history)).filter(other => other !== id)
    return { session, ...(begin !== undefined && { begin }), from }
  })
}

/** The session that a call gave back as its own. */
function passedOn({ head, lineage }: Session, sessions: ReadonlyMap<string, Session>): string | undefined {
  const { result } = lineage.extras
  return typeof result === 'string' && sessions.get(result)?.head === head ? result : undefined
}

function sourcesOf({ chunk }: Event, history: History): string[] {
  const heads = chunk.kind === 'merge' ? chunk.branches.map(({ head }) => head) : []
  return [...heads, previousOf(chunk)?.id].flatMap(id => ownerOf(id, history) ?? [])
}

/** Who made a chunk. One made before the fork that it was first kept with is nobody's; then it is who made the last one before. */
function ownerOf(id: Digest | null | undefined, { byChunk }: History): string | undefined {
  let event = id ? byChunk.get(id) : undefined
  while (event !== undefined) {
    const { chunk, session } = event
    if (chunk.id === session.head || (chunk.branch ?? '') === session.branch) return session.id
    const previous = previousOf(chunk)
    event = previous && byChunk.get(previous.id)
  }
  return undefined
}

/** A call that did something before the calls inside it, and then took in what they made, ended behind them. */
function inOrderOfEnds(origins: readonly Origin[]): Map<string, Origin> {
  const rank = new Map(origins.map(({ session }, i) => [session.id, i]))
  const ends = new Map<string, number>()
  for (const { session, from } of origins.toReversed()) {
    const own = rank.get(session.id) as number
    // Those that began later have been here.
    const end = from.reduce((latest, id) => Math.max(latest, ends.get(id) ?? own), own)
    ends.set(session.id, end)
  }
  const end = ({ session }: Origin) => ends.get(session.id) as number
  const sorted = origins.toReversed().sort((one, other) => end(one) - end(other))
  return new Map(sorted.map(origin => [origin.session.id, origin]))
}

/** What began behind the first steps of a call that ended later began behind what that call did. */
function endedBefore(
  id: string,
  origins: ReadonlyMap<string, Origin>,
  parents: Parents,
): Session | undefined {
  const seen = new Set<string>()
  for (let here: string | undefined = id; here !== undefined && !seen.has(here); ) {
    if (parents.has(here)) return origins.get(here)?.session
    seen.add(here)
    here = origins.get(here)?.begin
  }
  return undefined
}

/** Sessions with one history are told apart by lineage; forks of a session that was not kept are beside each other. */
function nearest(
  { lineage }: Session,
  other: Session,
  parents: Parents,
  origins: ReadonlyMap<string, Origin>,
): readonly string[] {
  const named = lineage.parents.find(id => parents.has(id) && origins.get(id)?.session.head === other.head)
  if (named !== undefined) return [named]
  const areForks = lineage.operation === 'fork' && other.lineage.operation === 'fork'
  const haveOneParent = lineage.parents.length > 0 && lineage.parents.join() === other.lineage.parents.join()
  return areForks && haveOneParent ? (parents.get(other.id) ?? []) : [other.id]
}

/**
 * All sessions of a store, oldest first. Most parents are never kept, being a step on the way to another session: a session then counts as
 * a child of the kept one that its history last went through.
 */
async function allNodes(store: Store): Promise<readonly GraphNode[]> {
  const rows: SessionRow[] = []
  const again = await madeAgain(store)
  const prompts = promptId('')
  for await (const row of rowsOf(store, {}))
    if (!row.id.startsWith(prompts) && !again.has(row.id)) rows.push(row)
  rows.reverse()
  const known = new Set(rows.map(({ id }) => id))
  const byHead = new Map<Digest, SessionRow[]>()
  for (const row of rows) {
    if (row.head === null) continue
    const ending = byHead.get(row.head)
    if (ending) ending.push(row)
    else byHead.set(row.head, [row])
  }
  return Promise.all(
    rows.map(async row => {
      const { id, lineage } = row
      const kept = lineage.parents.filter(parent => known.has(parent))
      if (kept.length === lineage.parents.length) return { id, lineage }
      const through = kept.length > 0 ? undefined : await lastKept(row, byHead, store)
      return { id, lineage: { ...lineage, parents: through ? [through] : kept } }
    }),
  )
}

/** The youngest older session that ended at a chunk of this one's history, the last such chunk first. */
async function lastKept(
  row: SessionRow,
  byHead: ReadonlyMap<Digest, readonly SessionRow[]>,
  store: Store,
): Promise<string | undefined> {
  for (const { id } of (await store.sessions.chunks(row.id)).toReversed()) {
    const older = byHead.get(id)?.filter(other => other.id !== row.id && isBefore(other, row))
    if (older?.length) return older.at(-1)?.id
  }
  return undefined
}

function isBefore(one: SessionRow, other: SessionRow): boolean {
  return one.lineage.at - other.lineage.at < 0 || (one.lineage.at === other.lineage.at && one.id < other.id)
}

/** Of runs that were driven more than once, the sessions that a later drive made again. */
async function madeAgain(store: Store): Promise<Set<string>> {
  const again = new Set<string>()
  for await (const { id, fence } of allRuns(store)) {
    if (fence < 2) continue
    const made = sessionsMade(await store.runs.journal(id))
    if (new Set(made.values()).size < 2) continue
    const sessions = new Map<string, Session>()
    for (const session of made.keys()) {
      const kept = await store.sessions.get(session).catch(() => undefined)
      if (kept) sessions.set(session, kept)
    }
    const left = withoutMadeAgain(sessions, new Map([[id, made]]))
    for (const session of sessions.keys()) if (!left.has(session)) again.add(session)
  }
  return again
}

async function* allRuns(store: Store): AsyncGenerator<RunRow> {
  const limit = 1000
  let page = await store.runs.list({ limit })
  while (page.length > 0) {
    yield* page
    const last = page.at(-1)
    page = last && page.length === limit ? await store.runs.list({ limit, before: last.id }) : []
  }
}
