import type { SessionNode } from '../dossier.ts'

/** Where each session of a drawing is: its row, and the column of its branch. A column is used again when its branch has ended. */
export interface Placed {
  readonly node: SessionNode
  readonly row: number
  readonly column: number
}

export interface Drawn {
  readonly places: readonly Placed[]
  readonly edges: readonly { readonly from: Placed; readonly to: Placed; readonly isFork: boolean }[]
  readonly columns: number
}

/** Columns beyond this share the last: a drawing must fit a phone. */
const mostColumns = 9

export function layout(nodes: readonly SessionNode[]): Drawn {
  const rowOf = new Map(nodes.map((node, row) => [node.id, row]))
  const columnOf = columns(nodes, rowOf)
  const places = nodes.map((node, row) => ({ node, row, column: columnOf.get(node.branch) as number }))
  const edges = places.flatMap(to =>
    to.node.after.flatMap(parent => {
      const row = rowOf.get(parent)
      if (row === undefined) return []
      const from = places[row] as Placed
      return [{ from, to, isFork: from.column < to.column }]
    }),
  )
  return { places, edges, columns: Math.max(1, ...places.map(place => place.column + 1)) }
}

/** Each branch has the lowest column that is free from its first parent's row to its last child's. */
function columns(nodes: readonly SessionNode[], rowOf: ReadonlyMap<string, number>): Map<number, number> {
  const spans = new Map<number, { start: number; end: number }>()
  const reach = (branch: number, row: number) => {
    const span = spans.get(branch)
    if (span) {
      span.start = Math.min(span.start, row)
      span.end = Math.max(span.end, row)
    } else spans.set(branch, { start: row, end: row })
  }
  for (const [row, node] of nodes.entries()) {
    reach(node.branch, row)
    for (const parent of node.after) {
      const at = rowOf.get(parent)
      if (at !== undefined) reach((nodes[at] as SessionNode).branch, row)
    }
  }
  const busyUntil: number[] = []
  const found = new Map<number, number>()
  for (const [branch, { start, end }] of [...spans].sort(([, a], [, b]) => a.start - b.start)) {
    const free = busyUntil.findIndex(until => until < start)
    const column = free >= 0 ? free : Math.min(busyUntil.length, mostColumns - 1)
    busyUntil[column] = Math.max(busyUntil[column] ?? 0, end)
    found.set(branch, column)
  }
  return found
}
