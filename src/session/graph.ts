import { RathError, show } from '../base/errors.ts'
import type { Lineage } from './lineage.ts'

/** What the graph needs of a session; a `Session` is one, and so is a store's row. */
export interface GraphNode {
  readonly id: string
  readonly lineage: Lineage
}

export interface GraphEdge {
  readonly from: string
  readonly to: string
}

/** A call inside a tool or an effect: what `to` made is part of the record of `from`, and is not one of its parents. */
export interface GraphLink extends GraphEdge {
  /** The tool call of `from` that it was made in. */
  readonly callId?: string
}

/** Sessions and how each came from others. Every traversal is a loop, linear in nodes and edges. */
export interface SessionGraph {
  /** Parents before children; otherwise in the order given. */
  readonly nodes: readonly GraphNode[]
  readonly edges: readonly GraphEdge[]
  /** From a session to those that calls inside its tools and effects made, where both are here. */
  readonly links: readonly GraphLink[]
  /** Nearest first. */
  ancestors(id: string): string[]
  /** Nearest first. */
  descendants(id: string): string[]
  /** A session that both come from and that none of its descendants is too; undefined when unrelated. A session is an ancestor of itself. */
  commonAncestor(a: string, b: string): string | undefined
  toMermaid(): string
  toDot(): string
  toJSON(): {
    nodes: readonly { id: string; lineage: Lineage }[]
    edges: readonly GraphEdge[]
    links: readonly GraphLink[]
  }
}

export function sessionGraph(sessions: Iterable<GraphNode>): SessionGraph {
  const byId = new Map<string, GraphNode>()
  for (const session of sessions) byId.set(session.id, { id: session.id, lineage: session.lineage })
  checkParents(byId)
  const children = childrenOf(byId)
  const nodes = parentsFirst(byId, children)
  const rank = new Map(nodes.map((node, i) => [node.id, i]))
  const edges = nodes.flatMap(node => distinct(node.lineage.parents).map(from => ({ from, to: node.id })))
  const links = nodes.flatMap(node => linksTo(node, byId))
  const parents = (id: string) => byId.get(id)?.lineage.parents ?? []

  function walk(id: string, next: (id: string) => readonly string[]): string[] {
    if (!byId.has(id)) throw new RathError('unknown-session', `Session ${show(id)} is not in this graph.`)
    const seen = new Set([id])
    for (const here of seen) for (const neighbour of next(here)) seen.add(neighbour)
    seen.delete(id)
    return [...seen]
  }

  return {
    nodes,
    edges,
    links,
    ancestors: id => walk(id, parents),
    descendants: id => walk(id, here => children.get(here) ?? []),
    commonAncestor(a, b) {
      const ofA = new Set([a, ...walk(a, parents)])
      let best: string | undefined
      for (const id of [b, ...walk(b, parents)]) {
        if (ofA.has(id) && (best === undefined || (rank.get(id) ?? 0) > (rank.get(best) ?? 0))) best = id
      }
      return best
    },
    toMermaid: () => mermaid(nodes, edges, links),
    toDot: () => dot(nodes, edges, links),
    toJSON: () => ({ nodes, edges, links }),
  }
}

/** The lineage of a call says for which session it was made, where that is not one of its parents. */
function linksTo({ id, lineage }: GraphNode, byId: ReadonlyMap<string, GraphNode>): GraphLink[] {
  const { session, callId } = (lineage.extras.inside ?? {}) as { session?: unknown; callId?: unknown }
  if (typeof session !== 'string' || !byId.has(session) || session === id) return []
  return [{ from: session, to: id, ...(typeof callId === 'string' && { callId }) }]
}

function checkParents(byId: ReadonlyMap<string, GraphNode>): void {
  const missing = new Map<string, string>()
  for (const { id, lineage } of byId.values()) {
    for (const parent of lineage.parents) if (!byId.has(parent)) missing.set(parent, id)
  }
  const [first] = missing
  if (!first) return
  const [parent, child] = first
  throw new RathError(
    'graph-incomplete',
    `${missing.size} parent session(s) are missing from the graph, first ${parent} (parent of ${child}). ` +
      'Pass them too, or detach() the sessions that should start the graph.',
    { data: { missing: [...missing.keys()].slice(0, 20) } },
  )
}

function childrenOf(byId: ReadonlyMap<string, GraphNode>): Map<string, string[]> {
  const children = new Map<string, string[]>()
  for (const { id, lineage } of byId.values()) {
    for (const parent of distinct(lineage.parents)) {
      const siblings = children.get(parent)
      if (siblings) siblings.push(id)
      else children.set(parent, [id])
    }
  }
  return children
}

/** Kahn's order. What is left over lies on a cycle or behind one. */
function parentsFirst(
  byId: ReadonlyMap<string, GraphNode>,
  children: ReadonlyMap<string, string[]>,
): GraphNode[] {
  const waiting = new Map<string, number>()
  for (const { id, lineage } of byId.values()) waiting.set(id, distinct(lineage.parents).length)
  const order: GraphNode[] = [...byId.values()].filter(node => waiting.get(node.id) === 0)
  for (const { id } of order) {
    for (const child of children.get(id) ?? []) {
      const left = (waiting.get(child) as number) - 1
      waiting.set(child, left)
      if (left === 0) order.push(byId.get(child) as GraphNode)
    }
  }
  if (order.length < byId.size) {
    const cycle = cycleIn(byId, id => (waiting.get(id) as number) > 0)
    throw new RathError(
      'graph-cycle',
      `These sessions are each other's ancestors: ${cycle.slice(0, 5).join(', ')}${cycle.length > 5 ? ', …' : ''}. ` +
        'A session cannot come from itself: mend the lineage of one of them.',
      { data: { sessions: cycle.slice(0, 20) } },
    )
  }
  return order
}

/** One cycle among the sessions that wait for a parent: from any of them, waiting parents lead into it. */
function cycleIn(byId: ReadonlyMap<string, GraphNode>, waits: (id: string) => boolean): string[] {
  const path = new Set<string>()
  let here = [...byId.keys()].find(waits) as string
  while (!path.has(here)) {
    path.add(here)
    here = byId.get(here)?.lineage.parents.find(waits) as string
  }
  const walked = [...path]
  return walked.slice(walked.indexOf(here)).reverse()
}

function distinct(ids: readonly string[]): readonly string[] {
  return ids.length < 2 ? ids : [...new Set(ids)]
}

/** What is said of a session. The end of an id tells sessions apart; its beginning is only the time they were made. */
export function captionOf({ id, lineage }: GraphNode): string {
  const { session } = (lineage.extras.inside ?? {}) as { session?: unknown }
  const inside = typeof session === 'string' ? `inside ${session.slice(-8)}` : ''
  return [id.slice(-8), lineage.operation, lineage.label, lineage.by, inside].filter(Boolean).join(' ')
}

function mermaid(
  nodes: readonly GraphNode[],
  edges: readonly GraphEdge[],
  links: readonly GraphLink[],
): string {
  const name = shortNames(nodes)
  const text = (node: GraphNode) =>
    captionOf(node)
      .replace(/[#"<>&`]/g, character => entities[character] as string)
      .replace(/[\r\n]+/g, ' ')
  return [
    'flowchart TD',
    ...nodes.map(node => `  ${name(node.id)}["${text(node)}"]`),
    ...edges.map(edge => `  ${name(edge.from)} --> ${name(edge.to)}`),
    ...links.map(link => `  ${name(link.from)} -.-> ${name(link.to)}`),
    '',
  ].join('\n')
}

/** Pages that draw a picture may take a label for HTML or Markdown. */
const entities: Readonly<Record<string, string>> = {
  '#': '#35;',
  '"': '#quot;',
  '<': '#lt;',
  '>': '#gt;',
  '&': '#amp;',
  '`': '#96;',
}

function dot(nodes: readonly GraphNode[], edges: readonly GraphEdge[], links: readonly GraphLink[]): string {
  const name = shortNames(nodes)
  return [
    'digraph sessions {',
    ...nodes.map(node => `  ${name(node.id)} [label=${JSON.stringify(captionOf(node))}];`),
    ...edges.map(edge => `  ${name(edge.from)} -> ${name(edge.to)};`),
    ...links.map(link => `  ${name(link.from)} -> ${name(link.to)} [style=dashed];`),
    '}',
    '',
  ].join('\n')
}

/** Names that both languages take as they are, whatever the ids look like. */
function shortNames(nodes: readonly GraphNode[]): (id: string) => string {
  const names = new Map(nodes.map((node, i) => [node.id, `s${i}`]))
  return id => names.get(id) as string
}
