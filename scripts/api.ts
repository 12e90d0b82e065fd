// Writes docs/api from the types in dist/: every name that the package exports, its comment and its declaration. Run by scripts/docs.ts.
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { type Declaration, declarationOf, exportedFrom } from './api-declaration.ts'

/** One exported name. */
interface Entry extends Declaration {
  readonly name: string
  readonly area: string
  /** What it is imported from: `openrath`, `openrath/session`. */
  readonly doors: string[]
}

/** The folders of `src`, in the order and the words of the pages. */
const areas: Readonly<Record<string, readonly [title: string, about: string]>> = {
  session: ['Sessions', 'The value that flows, its chunks, graph and files.'],
  flow: ['Agents and workflows', 'What you compose.'],
  run: ['Runs', 'Calls, events, budgets, the journal and the runtime.'],
  tool: ['Tools', 'Tools, policies, MCP.'],
  model: ['Models', 'Providers and what they are asked.'],
  sandbox: ['Sandboxes', 'Where tools work, and the contract of a backend.'],
  memory: ['Memory', 'What agents keep between sessions, and the contract of a backend.'],
  store: ['Stores', 'Where sessions and runs are kept, and the contract of a driver.'],
  evidence: ['Evidence', 'Questions about what happened.'],
  server: ['Server', 'Runs for other processes.'],
  testing: ['Testing', 'Scripted and recorded models, conformance suites.'],
  base: ['Errors and JSON', 'What every layer needs.'],
}

/** Writes the pages anew; what was there before is gone. */
export function writeApi(root: string): void {
  const folder = join(root, 'docs/api')
  const entries = entriesOf(root)
  rmSync(folder, { recursive: true, force: true })
  mkdirSync(folder, { recursive: true })
  const used = Object.keys(areas).filter(area => entries.some(entry => entry.area === area))
  writeFileSync(join(folder, 'index.md'), overview(used, entries))
  for (const area of used) writeFileSync(join(folder, `${area}.md`), page(area, entries))
}

/** Every name of every door, once. */
function entriesOf(root: string): Entry[] {
  const manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
  const entries = new Map<string, Entry>()
  for (const [door, targets] of Object.entries<{ types?: string }>(manifest.exports)) {
    if (!targets.types) continue
    const file = join(root, targets.types)
    for (const name of exportedFrom(file)) {
      const declaration = declarationOf(file, name)
      const area = areaOf(relative(join(root, 'dist'), declaration.file))
      const key = `${declaration.file} ${name}`
      const entry = entries.get(key) ?? { ...declaration, name, area, doors: [] }
      entry.doors.push(manifest.name + door.slice(1))
      entries.set(key, entry)
    }
  }
  return [...entries.values()].sort((a, b) => (a.name.toLowerCase() < b.name.toLowerCase() ? -1 : 1))
}

function areaOf(path: string): string {
  const area = dirname(path).split('/')[0] ?? ''
  if (!(area in areas)) throw new Error(`scripts/api.ts: ${path} is in no area; give its folder a title`)
  return area
}

function overview(used: readonly string[], entries: readonly Entry[]): string {
  const lists = used.map(area => {
    const [title, about] = areas[area] as [string, string]
    const names = entries.filter(entry => entry.area === area).map(link)
    return `## [${title}](${area}.md)\n\n${about}\n\n${names.join(' · ')}\n`
  })
  return [
    `# API\n\nEvery name that the package exports, from its types. Made from the source when these pages are built.\n`,
    ...lists,
  ].join('\n')
}

function page(area: string, entries: readonly Entry[]): string {
  const [title, about] = areas[area] as [string, string]
  const byName = new Map(entries.map(entry => [entry.name, entry]))
  const parts = entries
    .filter(entry => entry.area === area)
    .map(({ name, doors, comment, code }) => {
      const named = new Set(code.replace(/\/\*.*?\*\//gs, '').match(/\b[A-Z]\w+/g))
      const also = [...named].flatMap(other => (other === name ? [] : (byName.get(other) ?? []))).map(link)
      return [
        `## ${name} {#${anchor(name)}}`,
        comment,
        `\`\`\`ts\n${code}\n\`\`\``,
        `From ${doors.map(door => `\`${door}\``).join(' and ')}.${also.length > 0 ? ` See ${also.join(', ')}.` : ''}`,
      ]
        .filter(Boolean)
        .join('\n\n')
    })
  return `# ${title} {#top}\n\n${about}\n\n${parts.join('\n\n')}\n`
}

function link({ name, area }: Entry): string {
  return `[${name}](${area}.md#${anchor(name)})`
}

/** Anchors are lower case, and `Tool` and `tool` are two. */
function anchor(name: string): string {
  return /^[A-Z]/.test(name) ? name.toLowerCase() : `${name.toLowerCase()}-value`
}
