import { captionOf, type GraphNode, type SessionGraph } from '../session/graph.ts'
import { oneLine } from './one-line.ts'

export interface LaneOptions {
  /** Columns of the terminal; lines are cut to it. Default 80. */
  readonly width?: number
  /** Lanes that are drawn; the rest share the last one. Default a fifth of the width, 12 at most. */
  readonly lanes?: number
  /** Only characters that any terminal has. Default false. */
  readonly ascii?: boolean
  /** What is said of a session; by default its end of id, operation, label and producer. */
  readonly caption?: (node: GraphNode) => string
}

/** One line of the picture. Lines without a session join or part lanes. */
export interface LaneRow {
  readonly id?: string
  readonly lane: number
  readonly text: string
}

/**
 * The session graph as lanes for a terminal, the newest first: a lane goes down from a session to the parent it came from. Apart from
 * sorting by time it is O(nodes + edges), whatever the number of lanes, of which only so many are drawn.
 */
export function graphLanes(graph: SessionGraph, options: LaneOptions = {}): LaneRow[] {
  const { width = 80, ascii = false, caption = captionOf } = options
  const most = Math.max(1, options.lanes ?? Math.min(12, Math.floor(width / 5)))
  const pen = new Pen(ascii ? asciiGlyphs : unicodeGlyphs, most, width)
  const lanes = new Lanes(most)
  const rows: LaneRow[] = []
  for (const node of newestFirst(graph)) {
    const [lane = 0, ...joining] = lanes.take(node.id)
    if (joining.length > 0) rows.push({ lane, text: pen.join(lanes, lane, joining) })
    for (const other of joining) lanes.free(other)
    rows.push({ id: node.id, lane, text: pen.node(lanes, lane, oneLine(caption(node))) })
    const [first, ...others] = [...new Set(node.lineage.parents)]
    if (first === undefined) lanes.free(lane)
    else lanes.wait(lane, first)
    const parting = others.map(parent => lanes.add(parent))
    if (parting.length > 0) rows.push({ lane, text: pen.part(lanes, lane, parting) })
  }
  return rows
}

/** By time, and a child always before its parents, whatever the clocks said. */
function newestFirst({ nodes }: SessionGraph): GraphNode[] {
  const times = new Map<string, number>()
  for (const { id, lineage } of nodes) {
    const ofParents = lineage.parents.map(parent => times.get(parent) ?? 0)
    times.set(
      id,
      ofParents.reduce((one, other) => Math.max(one, other), lineage.at),
    )
  }
  // The sort is stable and the nodes come parents first, so that equal times keep that order.
  return nodes.toSorted((one, other) => (times.get(one.id) ?? 0) - (times.get(other.id) ?? 0)).reverse()
}

/** Which lanes lead down to which session. Each step costs the lanes it touches, and those that are drawn. */
class Lanes {
  /** What each lane leads to; undefined where none is. */
  readonly leadsTo: (string | undefined)[] = []
  readonly #drawn: number
  readonly #waiting = new Map<string, number[]>()
  readonly #unused = new Set<number>()

  constructor(drawn: number) {
    this.#drawn = drawn
  }

  /** The lanes that lead to a session, leftmost first; a new one when none does. */
  take(id: string): number[] {
    const lanes = this.#waiting.get(id)
    this.#waiting.delete(id)
    return lanes ? lanes.sort((one, other) => one - other) : [this.#place(id)]
  }

  add(id: string): number {
    const lane = this.#place(id)
    this.wait(lane, id)
    return lane
  }

  wait(lane: number, id: string): void {
    this.leadsTo[lane] = id
    const lanes = this.#waiting.get(id)
    if (lanes) lanes.push(lane)
    else this.#waiting.set(id, [lane])
  }

  free(lane: number): void {
    this.leadsTo[lane] = undefined
    this.#unused.add(lane)
    while (this.leadsTo.length > 0 && this.leadsTo.at(-1) === undefined) {
      this.leadsTo.pop()
      this.#unused.delete(this.leadsTo.length)
    }
  }

  #place(id: string): number {
    const lane = this.#free()
    this.#unused.delete(lane)
    this.leadsTo[lane] = id
    return lane
  }

  /** The leftmost of those that are drawn; further out any will do. */
  #free(): number {
    for (let lane = 0; lane < this.#drawn; lane++) if (this.leadsTo[lane] === undefined) return lane
    const [any = this.leadsTo.length] = this.#unused
    return any
  }
}

interface Glyphs {
  readonly node: string
  readonly down: string
  readonly across: string
  readonly cross: string
  /** Where a line across meets the lane of the session: to the right, to the left, to both. */
  readonly from: readonly [string, string, string]
  /** Where another lane meets it: at its left end, in between, at its right end. */
  readonly up: readonly [string, string, string]
  readonly open: readonly [string, string, string]
  readonly more: string
}

const unicodeGlyphs: Glyphs = {
  node: '●',
  down: '│',
  across: '─',
  cross: '┼',
  from: ['├', '┤', '┼'],
  up: ['└', '┴', '┘'],
  open: ['┌', '┬', '┐'],
  more: '…',
}
const asciiGlyphs: Glyphs = {
  node: '*',
  down: '|',
  across: '-',
  cross: '|',
  from: ['+', '+', '+'],
  up: ["'", "'", "'"],
  open: ['.', '.', '.'],
  more: '~',
}

/** Draws the first lanes, two columns each. */
class Pen {
  readonly #glyphs: Glyphs
  readonly #most: number
  readonly #width: number

  constructor(glyphs: Glyphs, most: number, width: number) {
    this.#glyphs = glyphs
    this.#most = most
    this.#width = width
  }

  node(lanes: Lanes, lane: number, caption: string): string {
    const { node, down, more } = this.#glyphs
    const drawn = this.#cells(lanes, i => (i === lane ? node : lanes.leadsTo[i] === undefined ? ' ' : down))
    const hidden =
      lane >= this.#most ? `${more}${node} ` : lanes.leadsTo.length > this.#most ? `${more}  ` : ''
    return this.#cut(`${drawn.join(' ')} ${hidden}${caption}`)
  }

  /** Lanes that end in the session below. */
  join(lanes: Lanes, lane: number, joining: readonly number[]): string {
    return this.#across(lanes, lane, joining, this.#glyphs.up)
  }

  /** Lanes that begin at the session above. */
  part(lanes: Lanes, lane: number, parting: readonly number[]): string {
    return this.#across(lanes, lane, parting, this.#glyphs.open)
  }

  #across(lanes: Lanes, lane: number, ends: readonly number[], corners: Glyphs['up']): string {
    const { down, across, cross, from, more } = this.#glyphs
    const isEnd = new Set(ends)
    const left = ends.reduce((one, other) => Math.min(one, other), lane)
    const right = ends.reduce((one, other) => Math.max(one, other), lane)
    const drawn = this.#cells(lanes, i => {
      if (i === lane) return from[left === lane ? 0 : right === lane ? 1 : 2]
      if (isEnd.has(i)) return corners[i === left ? 0 : i === right ? 2 : 1]
      const isBetween = i > left && i < right
      if (lanes.leadsTo[i] === undefined) return isBetween ? across : ' '
      return isBetween ? cross : down
    })
    const line = drawn.map((cell, i) => cell + (i >= left && i < right ? across : ' ')).join('')
    return this.#cut(right >= this.#most ? line + more : line).trimEnd()
  }

  #cells(lanes: Lanes, draw: (lane: number) => string): string[] {
    return Array.from({ length: Math.min(lanes.leadsTo.length, this.#most) }, (_, i) => draw(i))
  }

  #cut(text: string): string {
    const characters = [...text]
    return characters.length > this.#width
      ? `${characters.slice(0, this.#width - 1).join('')}${this.#glyphs.more}`
      : text.trimEnd()
  }
}
