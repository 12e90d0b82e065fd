import type { Argument, Cut, FileStep } from '../dossier.ts'
import { count, counted, shortDigest } from '../figures.ts'
import { type Content, html, type Markup } from './markup.ts'

const longText = 1_400
const manyLines = 18
const previewLines = 3

/** A recorded text. Long ones are folded, and what was cut off is said. */
export function textBlock(cut: Cut, kind = ''): Markup {
  const { text } = cut
  const body = html`<pre class="text ${kind}">${text}</pre>${cutNote(cut)}`
  if (text.length <= longText && lines(text) <= manyLines) return body
  const preview = text.split('\n', previewLines).join('\n').slice(0, 280)
  const size = `${counted(lines(text), 'line')}, ${counted(cut.characters ?? text.length, 'character')}`
  return html`<details class="long"><summary><span class="preview text ${kind}">${preview}…</span><span class="size">${size}</span></summary>${body}</details>`
}

function cutNote({ text, characters, digest }: Cut): Content {
  if (characters === undefined) return ''
  return html`<p class="cut">The first ${count(text.length)} of ${count(characters)} characters. Of all of it, sha256 <code>${digest}</code></p>`
}

export function argumentList(args: readonly Argument[]): Content {
  if (args.length === 0) return ''
  return html`<dl class="args">${args.map(({ name, value }) => html`<div><dt>${name || 'arguments'}</dt><dd>${textBlock(value, 'code')}</dd></div>`)}</dl>`
}

/** A changed file; its patch is folded unless `isOpen`. */
export function fileBlock(
  { path, change, from, patch }: FileStep,
  isOpen = false,
  more: Content = '',
): Markup {
  const name = html`<span class="path">${from === undefined ? path : `${from} → ${path}`}</span> <span class="change">${change}</span>`
  if (!patch) return html`<p class="file">${name}${more}</p>`
  const { added, removed } = sums(patch.text)
  const sum = html`<span class="sum"><ins>+${added}</ins> <del>−${removed}</del></span>`
  return html`<details class="file"${isOpen ? openAttribute : ''}><summary>${name} ${sum}${more}</summary>${diff(patch.text)}${cutNote(patch)}</details>`
}

export const openAttribute: Markup = html` open`

function diff(patch: string): Markup {
  const rows = patch.replace(/\n$/, '').split('\n')
  return html`<pre class="diff">${rows.map(row => html`<span class="${rowKind(row)}">${row}\n</span>`)}</pre>`
}

function rowKind(row: string): string {
  if (row.startsWith('+++') || row.startsWith('---')) return 'f'
  if (row.startsWith('@@')) return 'h'
  if (row.startsWith('+')) return 'a'
  return row.startsWith('-') ? 'd' : 'c'
}

export function sums(patch: string): { added: number; removed: number } {
  let added = 0
  let removed = 0
  for (const row of patch.split('\n')) {
    if (row.startsWith('+') && !row.startsWith('+++')) added++
    else if (row.startsWith('-') && !row.startsWith('---')) removed++
  }
  return { added, removed }
}

/** A table that becomes a list of labelled values where there is no room. */
export function table(
  caption: string,
  heads: readonly string[],
  rows: readonly (readonly Content[])[],
): Markup {
  const [first, ...rest] = heads
  return html`<table><caption>${caption}</caption>
<thead><tr><th scope="col">${first}</th>${rest.map(head => html`<th scope="col">${head}</th>`)}</tr></thead>
<tbody>${rows.map(
    ([name, ...cells]) => html`<tr><th scope="row">${name}</th>${cells.map(
      (cell, i) => html`<td data-label="${rest[i]}">${cell}</td>`,
    )}</tr>
`,
  )}</tbody></table>`
}

/** Links to steps; of many, the first. */
export function stepLinks(steps: readonly number[], most = 12): Content {
  const shown = steps.slice(0, most).map(n => html` ${stepLink(n)}`)
  const left = steps.length - shown.length
  return html`<span class="steps">${shown}${left > 0 ? ` and ${count(left)} more` : ''}</span>`
}

export function stepLink(n: number): Markup {
  return html`<a class="step-link" href="#s${n}">${n}</a>`
}

export function digestText(digest: string): Markup {
  return html`<code class="digest" title="${digest}">${shortDigest(digest)}</code>`
}

function lines(text: string): number {
  let found = 1
  for (let at = text.indexOf('\n'); at >= 0; at = text.indexOf('\n', at + 1)) found++
  return found
}
