// Writes the numbers of docs/reliability.md from the tables of bench/README.md: node scripts/docs-measured.ts
import { readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'

/** What a level costs, and the line of which benchmark says so, by its name and what stands in brackets behind the time. */
const lines: readonly (readonly [level: string, bench: string, line: string, ours: string])[] = [
  [
    'a write that outlives the process: SQLite, `normal`',
    'store',
    'append, sqlite, normal, one at a time',
    'per append',
  ],
  ['… and a power cut: SQLite, `full`', 'store', 'append, sqlite, full, one at a time', 'per append'],
  ['… with 100 sessions at once', 'store', 'append, sqlite, full, 100 sessions at a time', 'per append'],
  ['… on PostgreSQL, `full`', 'store', 'append, postgres, full, one at a time', 'per append'],
  ['… with 100 sessions at once', 'store', 'append, postgres, full, 100 sessions at a time', 'per append'],
  [
    "an agent's round, an answer and a tool, all of it on the record: `memory:`",
    'loop',
    'tool round, history of 10 chunks',
    'openrath',
  ],
  ['… behind 10,000 chunks', 'loop', 'tool round, history of 10,000 chunks', 'openrath'],
  ['an effect on the record: `memory:`', 'journal', 'an effect, memory', 'through the door'],
  [
    '… that outlives the process and a power cut: SQLite, `full`',
    'journal',
    'an effect, SQLite, full durability',
    'through the door',
  ],
  [
    'a run that can be resumed, of one step: SQLite, `full`',
    'journal',
    'a run of one step, SQLite, full durability',
    'one after the other',
  ],
  ['… 32 at a time', 'journal', 'a run of one step, SQLite, full durability', '32 at a time'],
  ['a replay, per chunk', 'journal', 'a chunk of a replay', 'replayed'],
  ['a chunk whose digest is checked again', 'session', 'verify of 10k chunks', 'per chunk'],
  [
    'a file that a call writes, kept for a rewind',
    'sandbox',
    'a file written and kept, 10,000 files',
    'a call that writes',
  ],
  [
    'a fork with files of its own',
    'sandbox',
    'a fork that writes its first file, 10,000 files',
    '50 at once, each',
  ],
  ['a command without walls', 'sandbox', 'start and end of a command', 'local'],
  ['a command behind walls', 'sandbox', 'start and end of a command', 'isolated'],
  ['a command in a container', 'sandbox', 'start and end of a command', 'docker, by Podman'],
]

/** The table, and when each part of it was measured. */
export function measured(bench: string): string {
  const sections = new Map(
    bench.split(/^### /m).map(section => [/^`(\w+)`/.exec(section)?.[1] ?? '', section] as const),
  )
  const rows = lines.map(([level, name, line, ours]) => {
    const found = cells(sections.get(name) ?? '').find(
      ([what, time]) => what === line && time?.endsWith(`(${ours})`),
    )
    if (found === undefined)
      throw new Error(`bench/README.md has no line "${line}" with (${ours}) in ${name}`)
    const [, time = '', baseline = '', ratio = ''] = found
    return `| ${level} | ${inOneLine(time.replace(/ \(.*/, ''))} | ${baseline} | ${ratio.replace(/ \(.*/, '')} |`
  })
  const used = [...new Set(lines.map(([, name]) => name))]
  const when = used.map(name => {
    const [, machine = '', load = '', day = ''] =
      /^(.+), (load [\d.]+), (\d{4}-\d\d-\d\d)T/m.exec(sections.get(name) ?? '') ?? []
    return { machine, text: `\`${name}\` at ${load} on ${day}` }
  })
  const machines = [...new Set(when.map(({ machine }) => machine))].join('; ')
  return `| what you get | took | beside | ratio |
|---|---|---|---|
${rows.join('\n')}

Medians on ${machines}: ${when.map(({ text }) => text).join(', ')}.
`
}

/** A page with the table in its place. */
export function withMeasured(page: string, bench: string): string {
  return page.replace(
    /(<!-- measured -->\n\n).*?(\n<!-- end -->)/s,
    (_, before, after) => before + measured(bench) + after,
  )
}

/** A number and its unit stay together. */
function inOneLine(time: string): string {
  return time.replace(' ', '\u00a0')
}

function cells(section: string): string[][] {
  return [...section.matchAll(/^\| (.+) \|$/gm)].map(([, row = '']) =>
    row.split('|').map(cell => cell.trim()),
  )
}

if (import.meta.main) {
  const root = dirname(import.meta.dirname)
  const path = join(root, 'docs/reliability.md')
  writeFileSync(
    path,
    withMeasured(readFileSync(path, 'utf8'), readFileSync(join(root, 'bench/README.md'), 'utf8')),
  )
}
