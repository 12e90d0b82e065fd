import { Argument, type Command, Option } from 'commander'
import { chunkText } from '../../session/chunk-text.ts'
import type { RunRow, RunStatus, SessionFilter, SessionRow, Store } from '../../store/spec.ts'
import { examples, type JsonOption, type StoreOption, wholeNumber, withJson, withStore } from '../command.ts'
import { isPrompt } from '../names.ts'
import type { Output } from '../output.ts'
import { openToRead } from '../runtime.ts'
import { ago, oneLine } from '../text.ts'

interface Options extends StoreOption, JsonOption {
  readonly limit: number
  readonly quiet?: boolean
  readonly by?: string
  readonly operation?: string
  readonly tagged?: boolean
  readonly status?: RunStatus
  readonly search?: string
  readonly prompts?: boolean
}

const statuses = ['running', 'waiting', 'needs-review', 'done', 'failed', 'cancelled']

export function define(command: Command, output: Output): void {
  command
    .addArgument(new Argument('[what]').choices(['sessions', 'runs']).default('sessions'))
    .option('-n, --limit <count>', 'rows to show, at most 1000', wholeNumber(), 20)
    .option('-q, --quiet', 'only the ids, one a line')
    .option('--by <producer>', 'only sessions that this agent or workflow made')
    .option('--operation <name>', 'only sessions made by fork, merge, Agent, …')
    .option('--tagged', 'only sessions that have a tag')
    .option('--prompts', "also the sessions that hold agents' instructions")
    .option('--search <words>', 'chunks in which all the words occur, best first')
    .addOption(new Option('--status <status>', 'only runs that stand like this').choices(statuses))
    .action((what: 'sessions' | 'runs', options: Options) => list(what, options, output))
  withStore(withJson(command))
  examples(command, [
    ['rath ls', 'the newest sessions'],
    ['rath ls runs --status waiting', 'runs that wait for a person'],
    ['rath ls --search "door paint"', 'where somebody spoke of both'],
    ['rath show $(rath ls -q -n 1)', 'the newest one'],
  ])
}

async function list(what: 'sessions' | 'runs', options: Options, output: Output): Promise<void> {
  await using store = await openToRead(options)
  if (options.search !== undefined) return await search(store, options.search, options, output)
  if (what === 'runs') return await listRuns(store, options, output)
  const { limit, by, operation, tagged } = options
  const filter: SessionFilter = {
    limit,
    ...(by && { by }),
    ...(operation && { operation }),
    ...(tagged && { tagged }),
  }
  const { rows: found, cursor } = await store.sessions.list(filter)
  const rows = options.prompts ? found : found.filter(({ id }) => !isPrompt(id))
  if (options.json) return output.json({ sessions: rows, more: cursor !== undefined })
  if (options.quiet) return rows.forEach(({ id }) => void output.print(id))
  if (rows.length === 0) return output.tell('No sessions.')
  const said = await Promise.all(rows.map(row => lastWords(store, row)))
  const lines = rows.map((row, i) => {
    const { operation: made, by: who, label } = row.lineage
    return [
      row.id,
      ago(row.updated),
      String(row.length),
      oneLine([made, label ?? who].filter(Boolean).join(' '), 28),
      oneLine(row.tags.join(' '), 24),
      said[i] as string,
    ]
  })
  output.print(
    table(
      ['SESSION', 'WHEN', 'CHUNKS', 'MADE BY', 'TAGS', 'LAST'],
      lines,
      output.stdout.columns || undefined,
    ),
  )
  if (cursor !== undefined) output.tell(`There are more: rath ls -n ${Math.min(1000, limit * 5)}`)
}

async function listRuns(
  store: Store,
  { limit, status, json, quiet }: Options,
  output: Output,
): Promise<void> {
  const rows = await store.runs.list({ limit, ...(status && { status }) })
  if (json) return output.json({ runs: rows })
  if (quiet) return rows.forEach(({ id }) => void output.print(id))
  if (rows.length === 0) return output.tell('No runs.')
  const lines = rows.map(row => [
    row.id,
    ago(row.updated),
    row.status,
    oneLine(workflowOf(row), 40),
    fileOf(row),
  ])
  output.print(
    table(['RUN', 'WHEN', 'STATUS', 'WORKFLOW', 'FILE'], lines, output.stdout.columns || undefined),
  )
}

async function search(store: Store, words: string, options: Options, output: Output): Promise<void> {
  const hits = await store.sessions.search(words, { limit: options.limit })
  if (options.json) return output.json({ hits })
  if (options.quiet) return [...new Set(hits.map(hit => hit.session))].forEach(id => void output.print(id))
  if (hits.length === 0) return output.tell(`Nothing holds all of ${JSON.stringify(words)}.`)
  const lines = hits.map(hit => [
    hit.session,
    String(hit.index),
    hit.kind,
    ago(hit.at),
    oneLine(hit.snippet, 200),
  ])
  output.print(table(['SESSION', 'CHUNK', 'KIND', 'WHEN', 'TEXT'], lines, output.stdout.columns || undefined))
}

/** The end of what was said, so that a person recognises a session. */
async function lastWords(store: Store, { id, length }: SessionRow): Promise<string> {
  const [last] = length === 0 ? [] : await store.sessions.chunks(id, length - 1)
  return last ? oneLine(chunkText(last.chunk as Parameters<typeof chunkText>[0]), 200) : ''
}

function workflowOf({ data }: RunRow): string {
  return typeof data.workflow === 'string' ? data.workflow : ''
}

function fileOf({ data }: RunRow): string {
  const { file } = (data.module ?? {}) as { file?: unknown }
  return typeof file === 'string' ? file : ''
}

/** Rows under a heading, each column as wide as it needs; the last one takes what is left of the width. */
function table(
  heading: readonly string[],
  rows: readonly (readonly string[])[],
  width = Number.POSITIVE_INFINITY,
): string {
  const last = heading.length - 1
  const widths = heading.map((title, i) => Math.max(title.length, ...rows.map(row => row[i]?.length ?? 0)))
  const before = widths.slice(0, last).reduce((sum, one) => sum + one + gap.length, 0)
  const room = Math.max(heading[last]?.length ?? 0, width - before)
  return [heading, ...rows]
    .map(row => row.map((cell, i) => (i === last ? cut(cell, room) : cell.padEnd(widths[i] ?? 0))))
    .map(cells => cells.join(gap).trimEnd())
    .join('\n')
}

const gap = '  '

function cut(text: string, room: number): string {
  return text.length > room ? `${text.slice(0, room - 1)}…` : text
}
