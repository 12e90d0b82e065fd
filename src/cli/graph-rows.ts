import type { GraphNode } from '../session/graph.ts'
import type { Store } from '../store/spec.ts'

/** All sessions of a store, oldest first. Parents that it does not have any more are taken out of the lineages. */
export async function graphRows(
  store: Store,
): Promise<{ readonly rows: readonly GraphNode[]; readonly missing: number }> {
  const rows: GraphNode[] = []
  let cursor: string | undefined
  do {
    const page = await store.sessions.list({ limit: 1000, ...(cursor && { cursor }) })
    for (const { id, lineage } of page.rows) rows.push({ id, lineage })
    cursor = page.cursor
  } while (cursor)
  rows.reverse()
  const known = new Set(rows.map(({ id }) => id))
  const missing = new Set(rows.flatMap(({ lineage }) => lineage.parents).filter(id => !known.has(id)))
  const whole = rows.map(({ id, lineage }) => {
    const parents = lineage.parents.filter(parent => known.has(parent))
    return { id, lineage: { ...lineage, parents } }
  })
  return { rows: missing.size === 0 ? rows : whole, missing: missing.size }
}

/** A session with everything that it came from and that came of it. Among siblings, only those that share a descendant. */
export function relatives(rows: readonly GraphNode[], id: string): readonly GraphNode[] {
  const byId = new Map(rows.map(row => [row.id, row]))
  const children = new Map<string, string[]>()
  for (const row of rows) {
    for (const parent of row.lineage.parents) children.set(parent, [...(children.get(parent) ?? []), row.id])
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
