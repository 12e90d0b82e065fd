import type { Digest } from '../base/digest.ts'
import type { GraphNode } from '../session/graph.ts'
import type { SessionRow, Store } from '../store/spec.ts'
import { isPrompt } from './names.ts'

/**
 * All sessions of a store, oldest first. Most parents are never kept, being a step on the way to another session: a session then counts as
 * a child of the kept one that its history last went through.
 */
export async function graphRows(store: Store): Promise<readonly GraphNode[]> {
  const rows: SessionRow[] = []
  let cursor: string | undefined
  do {
    const page = await store.sessions.list({ limit: 1000, ...(cursor && { cursor }) })
    rows.push(...page.rows.filter(({ id }) => !isPrompt(id)))
    cursor = page.cursor
  } while (cursor)
  rows.reverse()
  const known = new Set(rows.map(({ id }) => id))
  const byHead = new Map<Digest, SessionRow[]>()
  for (const row of rows) if (row.head !== null) addTo(byHead, row.head, row)
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

/** A session with everything that it came from and that came of it. Among siblings, only those that share a descendant. */
export function relatives(rows: readonly GraphNode[], id: string): readonly GraphNode[] {
  const byId = new Map(rows.map(row => [row.id, row]))
  const children = new Map<string, string[]>()
  for (const row of rows) {
    for (const parent of row.lineage.parents) addTo(children, parent, row.id)
  }
  const below = reach([id], here => children.get(here) ?? [])
  // What was merged into a descendant belongs to its story, so the ancestors of all of them do.
  const wanted = reach(below, here => byId.get(here)?.lineage.parents ?? [])
  return rows.filter(row => wanted.has(row.id))
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
