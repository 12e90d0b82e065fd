import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'

export interface Page {
  /** From the docs folder: `format/session.md`. */
  readonly path: string
  readonly title: string
  /** Its first paragraph of prose, as plain text. */
  readonly summary: string
  readonly markdown: string
}

export interface Group {
  readonly text: string
  readonly pages: readonly Page[]
}

/** The docs folder. */
export const docs = dirname(import.meta.dirname)

/** What the side bar shows, in this order. `sandbox*` is every page of that beginning; a page that no line names is under "More". */
const groups: readonly (readonly [text: string, paths: readonly string[]])[] = [
  ['Start here', ['start', 'ideas', 'cli', 'guides/index']],
  [
    'Guides',
    [
      'guides/several-ways',
      'guides/after-a-crash',
      'guides/change-one-thing',
      'guides/ask-a-person',
      'guides/who-did-it',
      'guides/keep-it-cheap',
      'guides/untrusted-code',
      'guides/many-items',
      'guides/team',
      'guides/test-agents',
      'guides/*',
    ],
  ],
  ['Agents', ['agents', 'workflows', 'containers', 'selector', 'compressor', 'approvals', 'testing']],
  [
    'Models',
    ['models', 'model-openai', 'model-anthropic', 'model-azure', 'model-openai-compatible', 'model*'],
  ],
  ['Tools', ['tools', 'builtin-tools', 'mcp', 'policy']],
  ['Sessions', ['session', 'workspaces', 'journal', 'evidence', 'dossier', 'telemetry']],
  ['Sandboxes', ['sandbox', 'sandbox-local', 'sandbox-isolated', 'sandbox*']],
  ['Memory', ['memory', 'memory-local', 'memory*']],
  ['Stores', ['store', 'store-sqlite', 'store*']],
  ['Promises', ['reliability', 'security']],
  ['Coming from', ['coming-from/index', 'coming-from/*']],
  ['More', ['*']],
  ['Formats', ['format/*']],
  ['API', ['api/index', 'api/*']],
  ['Decisions', ['decisions/*']],
]

/** Every page of the docs, those of the reference included where they have been made. */
export function allPages(): Page[] {
  return markdownUnder(docs).map(pageAt)
}

/** The pages that people write. */
export function writtenPages(): Page[] {
  return markdownUnder(docs, 'api').map(pageAt)
}

function pageAt(path: string): Page {
  const markdown = readFileSync(join(docs, path), 'utf8')
  return { path, markdown, title: titleOf(markdown, path), summary: summaryOf(markdown) }
}

/** The pages in the order in which they are shown, each once. The home page is in none. */
export function groupedPages(pages: readonly Page[] = allPages()): Group[] {
  const left = new Map(pages.map(page => [page.path.replace(/\.md$/, ''), page]))
  left.delete('index')
  const take = (pattern: string): Page[] => {
    const names = pattern.endsWith('*')
      ? [...left.keys()].filter(name => fits(name, pattern.slice(0, -1)))
      : [pattern]
    return names.flatMap(name => {
      const page = left.get(name)
      left.delete(name)
      return page ? [page] : []
    })
  }
  // Whoever is named comes before "More" takes the rest, wherever its group stands.
  const later = groups.filter(([text]) => text !== 'More')
  const taken = new Map(later.map(([text, patterns]) => [text, patterns.flatMap(take)]))
  taken.set('More', [...left.values()])
  return groups.flatMap(([text]) => {
    const found = taken.get(text) ?? []
    return found.length > 0 ? [{ text, pages: found }] : []
  })
}

function fits(name: string, beginning: string): boolean {
  return name.startsWith(beginning) && !name.slice(beginning.length).includes('/')
}

function markdownUnder(folder: string, except?: string): string[] {
  return readdirSync(folder, { withFileTypes: true })
    .flatMap(entry => {
      const path = join(folder, entry.name)
      if (entry.name.startsWith('.') || entry.name === except) return []
      if (entry.isDirectory()) return markdownUnder(path)
      return entry.name.endsWith('.md') ? [relative(docs, path)] : []
    })
    .sort()
}

function titleOf(markdown: string, path: string): string {
  return plain(markdown.match(/^(?:# |title: )(.+?)(?: \{#\w+\})?$/m)?.[1] ?? path)
}

function summaryOf(markdown: string): string {
  const prose = markdown.replace(/^---\n.*?^---$/ms, '').replace(/^```.*?^```$/gms, '')
  const paragraph = prose.split(/\n{2,}/).find(part => /^[\p{L}`*[]/u.test(part.trim())) ?? ''
  return plain(paragraph.trim().replace(/\s+/g, ' '))
}

/** Markdown of one line without its marks. */
function plain(line: string): string {
  return line.replace(/\[([^\]]*)\]\([^)]*\)/g, '$1').replace(/\*\*|`/g, '')
}
