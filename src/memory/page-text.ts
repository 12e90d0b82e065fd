/**
 * The words of a page of HTML. What scripts, styles and comments hold is none of them. A stranger wrote it, so it is gone through once from front
 * to back: what is never closed reaches to the end, and nothing is looked for twice.
 */
export function pageText(html: string): string {
  const parts: string[] = []
  let at = 0
  for (;;) {
    const start = html.indexOf('<', at)
    if (start < 0) break
    parts.push(html.slice(at, start))
    const { end, leaves } = markupAt(html, start)
    parts.push(leaves)
    at = end
  }
  parts.push(html.slice(at))
  return inLines(parts.join('').replace(entity, (_, name: string) => entities[name] ?? ' '))
}

/** Where the markup ends that begins here, and what stays of it in the text. */
function markupAt(html: string, start: number): { readonly end: number; readonly leaves: string } {
  markup.lastIndex = start
  const tag = markup.exec(html)?.[1]?.toLowerCase()
  if (tag === undefined) return { end: start + 1, leaves: '<' }
  if (tag === '!--') return { end: behind('-->', html, start), leaves: ' ' }
  if (unread.has(tag)) return { end: behind('>', html, behind(`</${tag}`, html, start)), leaves: ' ' }
  return { end: behind('>', html, start), leaves: blocks.test(tag) ? '\n' : '' }
}

/** A comparison such as `a < b` is none. */
const markup = /<(!--|[!?]|\/?[a-z][a-z\d-]*)/iy
const unread = new Set(['script', 'style', 'noscript', 'template'])
const blocks = /^\/?(?:p|div|br|li|h\d|tr|section|article|ul|ol|table|pre|blockquote)$/

/** The place behind what closes something, or the end. */
function behind(mark: string, html: string, start: number): number {
  const closing = new RegExp(mark, 'gi')
  closing.lastIndex = start
  return closing.test(html) ? closing.lastIndex : html.length
}

/** One space between words, and one empty line at most. */
function inLines(text: string): string {
  const lines = text.split('\n').map(line => line.replace(/\s+/g, ' ').trim())
  return lines.join('\n').replace(/\n{3,}/g, '\n\n')
}

const entity = /&(amp|lt|gt|quot|nbsp|#39|apos);/g
const entities: Readonly<Record<string, string>> = {
  amp: '&',
  lt: '<',
  gt: '>',
  quot: '"',
  nbsp: ' ',
  '#39': "'",
  apos: "'",
}
