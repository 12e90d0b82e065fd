import { copyFileSync, mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { defineConfig } from 'vitepress'
import { llms, llmsFull } from '../../scripts/llms.ts'
import { textInsteadOfOutsideLinks } from './outside-links.ts'
import { docs, groupedPages, type Page } from './pages.ts'

const item = ({ title, path }: Page) => ({ text: title, link: `/${path.replace(/(index)?\.md$/, '')}` })

/** Files beside the pages that pages link to, and the picture of the first page. */
const attached = ['format/example.jsonl', 'pictures/graph.svg']

/** A fork that merges, as the icon of the tab. */
const icon =
  '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16"><path d="M3 8c5 0 3-5 10-5M3 8c5 0 3 5 10 5" fill="none" stroke="#1f5f63" stroke-width="1.5"/><g fill="#1f5f63"><circle cx="3" cy="8" r="2.5"/><circle cx="13" cy="3" r="2.5"/><circle cx="13" cy="13" r="2.5"/></g></svg>'

export default defineConfig({
  title: 'OpenRath',
  description: 'A runtime for many agents over many sessions: the Session is the value that flows.',
  lang: 'en',
  head: [['link', { rel: 'icon', href: `data:image/svg+xml,${encodeURIComponent(icon)}` }]],
  lastUpdated: false,
  ignoreDeadLinks: attached.map(path => new RegExp(`${path.split('/').at(-1)?.replace('.', '\\.')}$`)),
  markdown: {
    theme: { light: 'github-light', dark: 'github-dark-dimmed' },
    config: textInsteadOfOutsideLinks,
  },
  themeConfig: {
    nav: [
      { text: 'Start', link: '/start' },
      { text: 'Guides', link: '/guides/' },
      { text: 'Security', link: '/security' },
      { text: 'API', link: '/api/' },
    ],
    sidebar: groupedPages().map(({ text, pages }, i) => ({
      text,
      collapsed: i > 4,
      items: pages.map(item),
    })),
    outline: [2, 3],
    search: { provider: 'local' },
    docFooter: { prev: false, next: false },
  },
  buildEnd({ outDir }) {
    const groups = groupedPages()
    const pages = groups.flatMap(group => group.pages)
    // llms.txt links to the pages as they were written.
    for (const path of [...attached, ...pages.map(page => page.path)]) {
      mkdirSync(dirname(join(outDir, path)), { recursive: true })
      copyFileSync(join(docs, path), join(outDir, path))
    }
    writeFileSync(join(outDir, 'llms.txt'), llms(groups))
    writeFileSync(join(outDir, 'llms-full.txt'), llmsFull(groups))
  },
})
