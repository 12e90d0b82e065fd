import type { BranchReport, Dossier, SessionNode } from '../dossier.ts'
import { count, counted, shortId, timeOfDay } from '../figures.ts'
import { type Content, html, type Markup } from './markup.ts'
import { stepLink } from './parts.ts'

const rowHeight = 46
const columnWidth = 15
const margin = 12
/** Rows of a drawing; a longer graph is told by its branches. */
const mostRows = 400

/** The session graph: lanes drawn beside a list of sessions, oldest first. */
export function graphSection({ sessions, branches }: Dossier): Content {
  const shown = worthDrawing(sessions)
  const nodes = shown.slice(0, mostRows)
  const drawn = layout(nodes)
  const left = shown.length - nodes.length
  const around = sessions.length - shown.length
  return html`<div class="graph">${drawing(drawn, branches)}<ol>${drawn.places.map(({ node }) => row(node, branches))}</ol></div>
${left > 0 ? html`<p class="note">${counted(left, 'more session')} not drawn; the branches below are complete.</p>` : ''}
${around > 0 ? html`<p class="note">${counted(around, 'session')} without steps of their own: forks, and calls that only called others.</p>` : ''}
<ul class="legend" aria-label="Legend">${(['adopted', 'rejected', 'unjudged'] as const).map(
    status => html`<li>${legendMark(status)} ${status}</li>`,
  )}</ul>`
}

/** Sessions that did something, and for each branch where nothing was done, one. */
function worthDrawing(sessions: readonly SessionNode[]): SessionNode[] {
  const busy = new Set(sessions.filter(({ steps }) => steps > 0).map(({ branch }) => branch))
  return sessions.filter(({ steps, branch, isFinal }) => {
    if (steps > 0 || isFinal) return true
    if (busy.has(branch)) return false
    busy.add(branch)
    return true
  })
}

function row(node: SessionNode, branches: readonly BranchReport[]): Markup {
  const branch = branches[node.branch] as BranchReport
  const what = node.steps > 0 ? counted(node.steps, 'step') : 'nothing new'
  return html`<li${node.isFinal ? html` class="final"` : ''}><p><strong>${branch.name}</strong> <span class="op">${node.operation}</span>${node.isFinal ? html` <span class="tag">result</span>` : ''}</p><p class="meta">${what}${node.firstStep === undefined ? '' : html` from ${stepLink(node.firstStep)}`}${node.by === undefined ? '' : ` · ${node.by}`} · ${timeOfDay(node.at)} · <code>${shortId(node.id)}</code></p></li>`
}

function drawing({ places, edges, columns }: Drawn, branches: readonly BranchReport[]): Markup {
  const width = margin * 2 + (columns - 1) * columnWidth
  const height = places.length * rowHeight
  const status = (place: Placed) => branches[place.node.branch]?.status ?? 'unjudged'
  return html`<svg width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" role="img" aria-label="${`${count(places.length)} sessions on ${counted(columns, 'lane')}; the list beside it says the same`}">
<g class="edges">${edges.map(({ from, to, isFork }) => html`<path class="${isFork ? status(to) : status(from)}${!isFork && status(from) === 'rejected' ? ' left-out' : ''}" d="${line(from, to, isFork)}"/>`)}</g>
<g class="nodes">${places.map(place => mark(x(place), y(place), status(place), place.node.isFinal))}</g></svg>`
}

/** Down the column and over: a fork leaves at its beginning, a merge comes in at its end. */
function line(from: Placed, to: Placed, isFork: boolean): string {
  const [x1, y1, x2, y2] = [x(from), y(from), x(to), y(to)]
  if (x1 === x2) return `M${x1} ${y1}V${y2}`
  const bend = rowHeight * 0.8
  if (isFork) {
    const turn = y1 + bend
    return `M${x1} ${y1}C${x1} ${y1 + bend / 2} ${x2} ${turn - bend / 2} ${x2} ${turn}V${y2}`
  }
  const turn = y2 - bend
  return `M${x1} ${y1}V${turn}C${x1} ${turn + bend / 2} ${x2} ${y2 - bend / 2} ${x2} ${y2}`
}

function mark(cx: number, cy: number, status: string, isFinal?: boolean): Markup {
  const ring = isFinal ? html`<circle class="ring" cx="${cx}" cy="${cy}" r="8.5"/>` : ''
  const cross =
    status === 'rejected' ? html`<path class="cross" d="M${cx - 2} ${cy - 2}l4 4m0 -4l-4 4"/>` : ''
  return html`${ring}<circle class="${status}" cx="${cx}" cy="${cy}" r="4.5"/>${cross}`
}

function legendMark(status: string): Markup {
  return html`<svg width="16" height="16" viewBox="0 0 16 16" aria-hidden="true"><g class="nodes">${mark(8, 8, status)}</g></svg>`
}

function x({ column }: Placed): number {
  return margin + column * columnWidth
}

function y({ row }: Placed): number {
  return row * rowHeight + rowHeight / 2
}

/** Where each session of a drawing is: its row, and the column of its branch. A column is used again when its branch has ended. */
interface Placed {
  readonly node: SessionNode
  readonly row: number
  readonly column: number
}

interface Drawn {
  readonly places: readonly Placed[]
  readonly edges: readonly { readonly from: Placed; readonly to: Placed; readonly isFork: boolean }[]
  readonly columns: number
}

/** Columns beyond this share the last: a drawing must fit a phone. */
const mostColumns = 9

function layout(nodes: readonly SessionNode[]): Drawn {
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
