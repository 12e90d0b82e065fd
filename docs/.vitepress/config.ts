import { copyFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { defineConfig } from 'vitepress'
import { llms, llmsFull } from '../../scripts/llms.ts'
import { textInsteadOfOutsideLinks } from './outside-links.ts'
import { docs, groupedPages, type Page } from './pages.ts'

const item = ({ title, path }: Page) => ({ text: title, link: `/${path.replace(/(index)?\.md$/, '')}` })

/** Files beside the pages that pages link to. */
const attached = ['format/example.jsonl']

export default defineConfig({
  title: 'OpenRath',
  description: 'A runtime for many agents over many sessions: the Session is the value that flows.',
  lang: 'en',
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
      collapsed: i > 3,
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
    for (const path of [...attached, ...pages.map(page => page.path)])
      copyFileSync(join(docs, path), join(outDir, path))
    writeFileSync(join(outDir, 'llms.txt'), llms(groups))
    writeFileSync(join(outDir, 'llms-full.txt'), llmsFull(groups))
  },
})
