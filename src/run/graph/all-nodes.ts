import type { Digest } from '../../base/digest.ts'
import type { GraphNode } from '../../session/graph.ts'
import type { Session } from '../../session/session.ts'
import type { RunRow, SessionRow, Store } from '../../store/spec.ts'
import { sessionsMade } from '../entry.ts'
import { promptId } from '../prompt.ts'
import { withoutMadeAgain } from './made-again.ts'
import { rowsOf } from './rows.ts'

/**
 * All sessions of a store, oldest first. Most parents are never kept, being a step on the way to another session: a session then counts as
 * a child of the kept one that its history last went through.
 */
export async function allNodes(store: Store): Promise<readonly GraphNode[]> {
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
