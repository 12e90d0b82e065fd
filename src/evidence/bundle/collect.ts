import type { Digest } from '../../base/digest.ts'
import { RathError, show } from '../../base/errors.ts'
import { sessionsMade } from '../../run/entry.ts'
import { rowOf, rowsOf, sessionsInside } from '../../run/graph/rows.ts'
import { backwards } from '../../session/chain.ts'
import { sessionGraph } from '../../session/graph.ts'
import { namedBy } from '../../session/lineage.ts'
import { type Session, valueFrom } from '../../session/session.ts'
import type { SessionRow, Store } from '../../store/spec.ts'

/** What a bundle is made of. */
export interface BundleContent {
  /** Sessions by id, prefix or tag. With runs, besides those. */
  readonly sessions?: readonly string[]
  /** Runs by id: their journals and the sessions that went in, were made and came out. */
  readonly runs?: readonly string[]
  /**
   * What comes with a named session. `graph` (default): everything it is connected with, rejected branches too. `ancestors`: what it
   * came from. `alone`: nothing but prompts.
   */
  readonly with?: 'graph' | 'ancestors' | 'alone'
}

export interface Collected {
  /** Prompts first, then parents before children. */
  readonly rows: readonly SessionRow[]
  readonly absent: readonly string[]
}

/** The rows of the sessions that belong in a bundle: all of the store when no session and no run is named. */
export async function collectRows(store: Store, content: BundleContent): Promise<Collected> {
  const named = await namedSessions(store, content)
  const rows = new Map<string, SessionRow>()
  for await (const row of named && (await isListed(store, content))
    ? connected(named, store)
    : rowsOf(store, {}))
    rows.set(row.id, row)
  const found = named === undefined ? [...rows.keys()] : await reach(named, rows, store, content.with)
  const { wanted, lost } = await withInside(found, rows, store)
  const parents = wanted.flatMap(id => rows.get(id)?.lineage.parents ?? [])
  const absent = [...new Set([...parents.filter(parent => !rows.has(parent)), ...lost])]
  return { rows: inOrder(wanted.map(id => rows.get(id) as SessionRow)), absent }
}

/** The same with the sessions that were made inside them, and what those came from. A session without its sub-agents is half a record. */
async function withInside(
  found: readonly string[],
  rows: ReadonlyMap<string, SessionRow>,
  store: Store,
): Promise<{ readonly wanted: readonly string[]; readonly lost: readonly string[] }> {
  const wanted = new Set(found)
  const lost = new Set<string>()
  const seen = new Set<Digest>()
  for (const id of wanted)
    for (const chunk of backwards(valueFrom(await store.sessions.get(id)).tip)) {
      if (seen.has(chunk.id)) break
      seen.add(chunk.id)
      for (const inside of sessionsInside(chunk)) {
        if (!rows.has(inside)) lost.add(inside)
        else for (const one of ancestorsByLineage(inside, rows)) wanted.add(one)
      }
    }
  return { wanted: [...wanted], lost: [...lost] }
}

function ancestorsByLineage(id: string, rows: ReadonlyMap<string, SessionRow>): string[] {
  const seen = new Set([id])
  for (const here of seen) for (const parent of namedIn(rows, here)) seen.add(parent)
  return [...seen].filter(one => rows.has(one))
}

/** The ids under which a store keeps the prompts of a session's answers. */
export function promptsOf(session: Session): Digest[] {
  const prompts = session.chunks.flatMap(chunk =>
    chunk.kind === 'assistant' && chunk.prompt !== undefined ? [chunk.prompt] : [],
  )
  return [...new Set(prompts)]
}

/** Whether only runs are named that say what they made. For others, sessions that no lineage connects are looked for in all of the store. */
async function isListed(store: Store, { sessions, runs = [] }: BundleContent): Promise<boolean> {
  if (sessions !== undefined) return false
  const journals = await Promise.all(runs.map(id => store.runs.journal(id)))
  return journals.every(journal => sessionsMade(journal).size > 0)
}

/** Whatever lineage leads to from these, in both directions and through sessions that were not kept, and what was made inside it. */
async function* connected(named: readonly string[], store: Store): AsyncGenerator<SessionRow> {
  const ids = new Set(named)
  const seen = new Set<Digest>()
  for (const id of ids) {
    for await (const child of rowsOf(store, { parent: id })) ids.add(child.id)
    const row = await rowOf(store, id)
    if (row === undefined) continue
    yield row
    for (const parent of namedBy(row.lineage)) ids.add(parent)
    for (const chunk of backwards(valueFrom(await store.sessions.get(id)).tip)) {
      if (seen.has(chunk.id)) break
      seen.add(chunk.id)
      for (const inside of sessionsInside(chunk)) ids.add(inside)
    }
  }
}

async function namedSessions(store: Store, content: BundleContent): Promise<string[] | undefined> {
  const { sessions, runs } = content
  if (sessions === undefined && runs === undefined) return undefined
  const ids: string[] = []
  for (const name of sessions ?? []) ids.push((await store.sessions.row(name)).id)
  for (const id of runs ?? []) {
    const { input, output } = await store.runs.get(id)
    for (const name of [input, output]) if (name !== null) ids.push((await store.sessions.row(name)).id)
    for (const made of sessionsMade(await store.runs.journal(id)).keys())
      if (await rowOf(store, made)) ids.push(made)
  }
  return ids
}

async function reach(
  named: readonly string[],
  rows: ReadonlyMap<string, SessionRow>,
  store: Store,
  how: BundleContent['with'] = 'graph',
): Promise<string[]> {
  switch (how) {
    case 'alone':
      return [...new Set(named)]
    case 'ancestors':
      return ancestorsOf(named, rows, store)
    case 'graph':
      return graphOf(named, rows, store)
  }
  throw new RathError('invalid-argument', `with is 'graph', 'ancestors' or 'alone', not ${show(how)}.`)
}

/** By lineage; and where that leads through sessions that were never kept, those that ended at a chunk of the history. */
async function ancestorsOf(
  named: readonly string[],
  rows: ReadonlyMap<string, SessionRow>,
  store: Store,
): Promise<string[]> {
  const seen = new Set(named)
  for (const id of seen) for (const parent of namedIn(rows, id)) seen.add(parent)
  const history = new Set<Digest>()
  for (const id of named) for (const chunk of (await store.sessions.get(id)).chunks) history.add(chunk.id)
  for (const { id, head } of rows.values()) if (head !== null && history.has(head)) seen.add(id)
  return [...seen].filter(id => rows.has(id))
}

/** By lineage in both directions; and since some sessions in between may never have been kept, by their first chunk. */
async function graphOf(
  named: readonly string[],
  rows: ReadonlyMap<string, SessionRow>,
  store: Store,
): Promise<string[]> {
  const neighbours = new Map<string, string[]>()
  const connect = (one: string, other: string) => {
    for (const [from, to] of [
      [one, other],
      [other, one],
    ] as const) {
      const others = neighbours.get(from)
      if (others) others.push(to)
      else neighbours.set(from, [to])
    }
  }
  for (const { id, lineage } of rows.values()) {
    for (const parent of namedBy(lineage)) connect(id, parent)
    const isBroken = lineage.parents.length === 0 || lineage.parents.some(parent => !rows.has(parent))
    const first = isBroken && (await store.sessions.get(id)).chunks.at(0)?.id
    if (first) connect(id, `chunk ${first}`)
  }
  const seen = new Set(named)
  for (const id of seen) for (const next of neighbours.get(id) ?? []) seen.add(next)
  return [...seen].filter(id => rows.has(id))
}

function namedIn(rows: ReadonlyMap<string, SessionRow>, id: string): readonly string[] {
  const row = rows.get(id)
  return row ? namedBy(row.lineage) : []
}

function inOrder(rows: readonly SessionRow[]): SessionRow[] {
  const byId = new Map(rows.map(row => [row.id, row]))
  // The same in every store: sessions of one moment follow their ids, and not when a store was given them.
  const known = rows.toSorted(
    (one, other) => one.lineage.at - other.lineage.at || (one.id < other.id ? -1 : 1),
  )
  const nodes = known.map(({ id, lineage }) => ({
    id,
    lineage: { ...lineage, parents: namedBy(lineage).filter(parent => byId.has(parent)) },
  }))
  return sessionGraph(nodes).nodes.map(node => byId.get(node.id) as SessionRow)
}
