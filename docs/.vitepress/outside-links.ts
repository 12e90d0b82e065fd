import { relative, resolve } from 'node:path'
import type { MarkdownRenderer } from 'vitepress'
import { docs } from './pages.ts'

/** A link to a file of the repository that is no page, such as `../bench/README.md`, is shown as its text: the site does not have it. */
export function textInsteadOfOutsideLinks(markdown: MarkdownRenderer): void {
  markdown.core.ruler.push('outside-links', ({ tokens, env }) => {
    for (const { children } of tokens) {
      let outside = false
      for (const token of children ?? []) {
        if (token.type === 'link_open') outside = leaves(token.attrGet('href') ?? '', env?.path ?? '')
        if (!outside || !/^link_(open|close)$/.test(token.type)) continue
        if (token.type === 'link_close') outside = false
        token.tag = 'span'
        token.type = `span_${token.nesting === 1 ? 'open' : 'close'}`
        token.attrs = null
      }
    }
    return true
  })
}

function leaves(href: string, page: string): boolean {
  if (!/^\.\.?\//.test(href)) return false
  return relative(docs, resolve(page, '..', href)).startsWith('..')
}
