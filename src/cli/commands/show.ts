import type { Command } from 'commander'
import { openApprovals } from '../../run/approve/decide.ts'
import { reportRun } from '../../run/replay/report.ts'
import type { Chunk } from '../../session/chunk.ts'
import type { Session } from '../../session/session.ts'
import type { RunRow, Store } from '../../store/spec.ts'
import { chunkLines } from '../chunk-print.ts'
import { examples, type JsonOption, type StoreOption, withJson, withStore } from '../command.ts'
import { UsageError } from '../errors.ts'
import { findEither } from '../names.ts'
import type { Output } from '../output.ts'
import { openToRead } from '../runtime.ts'
import { ago, count, duration } from '../text.ts'

interface Options extends StoreOption, JsonOption {
  readonly full?: boolean
  readonly chunk?: string
}

export function define(command: Command, output: Output): void {
  command
    .argument('<name>', 'a session (id, beginning of it, or tag) or a run')
    .option('-f, --full', 'every chunk with all of its text')
    .option('-c, --chunk <chunk>', 'one chunk, by its index or the beginning of its id')
    .action((name: string, options: Options) => show(name, options, output))
  withStore(withJson(command))
  examples(command, [
    ['rath show 0198c2d1', 'what a session holds, a line for each chunk'],
    ['rath show last', 'how the newest run stands'],
    ['rath show chat --chunk 4', 'all of one chunk'],
  ])
}

async function show(name: string, options: Options, output: Output): Promise<void> {
  await using store = await openToRead(options)
  const found = await findEither(store, name)
  if (found.run) return await showRun(found.run, store, options, output)
  const session = await store.sessions.get(found.session)
  if (options.chunk !== undefined) return showChunk(pick(session, options.chunk), options, output)
  if (options.json)
    return output.json({ ...session.toJSON(), usage: session.usage, chunks: [...session.chunks] })
  output.print(heading(session, output))
  for (const chunk of session.chunks) output.print(chunkLines(chunk, output, options.full ?? false))
}

async function showRun(row: RunRow, store: Store, options: Options, output: Output): Promise<void> {
  const report = await reportRun(row.id, store)
  const approvals = await openApprovals(row.id, store)
  if (options.json) return output.json({ ...row, report, approvals })
  const { paid, reused, kinds } = report
  const parts = Object.entries(kinds).map(([kind, { paid: own }]) => count(own.calls, `${kind} effect`))
  const facts: [string, string | undefined][] = [
    ['workflow', String(row.data.workflow ?? '')],
    ['status', row.status],
    ['begun', `${new Date(row.created).toISOString()} (${ago(row.created)})`],
    ['paid', `${count(paid.calls, 'effect')}, ${count(paid.tokens, 'token')}, ${duration(paid.ms)}`],
    ['reused', reused.calls > 0 ? `${count(reused.calls, 'effect')} of run ${report.reuse}` : undefined],
    ['effects', parts.join(', ')],
    ['input', row.input ?? undefined],
    ['output', row.output ?? undefined],
  ]
  output.print(output.paint('bold', `Run ${row.id}`))
  for (const [name, value] of facts) if (value) output.print(`  ${name.padEnd(9)} ${value}`)
  for (const { approval, question, tool } of approvals)
    output.print(`  waits for  ${approval}  ${tool}: ${question}`)
}

function showChunk(chunk: Chunk, { json }: Options, output: Output): void {
  if (json) output.json(chunk)
  else output.print(`${chunk.id}\n${chunkLines(chunk, output, true)}`)
}

function pick(session: Session, name: string): Chunk {
  const index = /^-?\d{1,9}$/.test(name) ? Number(name) : undefined
  const chunk =
    index === undefined ? [...session.chunks].find(({ id }) => id.startsWith(name)) : session.chunks.at(index)
  if (chunk) return chunk
  throw new UsageError(
    `session ${session.id} has no chunk ${name}; it has ${session.length}, counted from 0.`,
  )
}

function heading(session: Session, output: Output): string {
  const { operation, by, parents, at } = session.lineage
  const { totalTokens, cost } = session.usage
  const facts = [count(session.length, 'chunk'), `made by ${by ?? operation}`, ago(at)]
  if (session.branch) facts.push(`branch ${session.branch}`)
  if (session.placement) facts.push(`on ${session.placement.backend}`)
  if (totalTokens > 0) facts.push(count(totalTokens, 'token'))
  if (cost !== undefined) facts.push(`$${cost.toFixed(4)}`)
  const from = parents.length > 0 ? `\nfrom ${parents.join(', ')}` : ''
  return `${output.paint('bold', `Session ${session.id}`)} (${facts.join(', ')})${from}`
}
