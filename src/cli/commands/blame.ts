import { relative, resolve, sep } from 'node:path'
import type { Command } from 'commander'
import { type BlamedChunk, type BlamedLine, blame } from '../../evidence/blame.ts'
import type { Producer } from '../../evidence/producer.ts'
import type { Session } from '../../session/session.ts'
import type { Store } from '../../store/spec.ts'
import { examples, type JsonOption, type StoreOption, withJson, withStore } from '../command.ts'
import { UsageError } from '../errors.ts'
import { findSession } from '../names.ts'
import type { Output } from '../output.ts'
import { openToRead } from '../runtime.ts'
import { ago, indent, oneLine, plain } from '../text.ts'

interface Options extends StoreOption, JsonOption {
  readonly session?: string
  readonly files?: string
}

export function define(command: Command, output: Output): void {
  command
    .argument('<what>', 'FILE or FILE:LINE; or a session, with a chunk behind it')
    .argument('[chunk]', "a chunk's index or id")
    .option('-s, --session <session>', 'whose file; by default the newest run that changed it')
    .option(
      '--files <folder>',
      'where files of workspaces were kept; by default where this machine keeps them',
    )
    .action((what: string, chunk: string | undefined, options: Options) =>
      chunk === undefined ? blameFile(what, options, output) : blameChunk(what, chunk, options, output),
    )
  withStore(withJson(command))
  examples(command, [
    ['rath blame src/parser.ts', 'who wrote each line'],
    ['rath blame src/parser.ts:40', 'one line, with the prompt and model behind it'],
    ['rath blame last 7', 'where a statement comes from, and what had been seen'],
  ])
}

async function blameFile(what: string, options: Options, output: Output): Promise<void> {
  const [, path = what, line] = /^(.*?):(\d+)$/.exec(what) ?? []
  await using store = await openToRead(options)
  const session = await sessionFor(path, options, store)
  const target = { path: pathIn(session, path), ...(line !== undefined && { line: Number(line) }) }
  const lines = await blame(session, target, { store, ...(options.files && { files: options.files }) })
  if (options.json) return output.json({ session: session.id, path: target.path, lines })
  const width = String(lines.at(-1)?.line ?? 1).length
  for (const one of lines) {
    output.print(
      `${output.paint('dim', whence(one).padEnd(40))} ${String(one.line).padStart(width)} ${plain(one.text)}`,
    )
  }
  const only = line === undefined ? undefined : lines[0]?.producer
  if (only) output.print(indent(about(only)))
}

async function blameChunk(name: string, chunk: string, options: Options, output: Output): Promise<void> {
  await using store = await openToRead(options)
  const session = await store.sessions.get(await findSession(store, name))
  const found = await blame(session, { chunk: chunkNamed(session, chunk) }, { store })
  if (options.json) return output.json({ session: session.id, ...found })
  print(found, output)
}

function print({ producer, text, promptText, seen }: BlamedChunk, output: Output): void {
  output.print(plain(text))
  output.print(about(producer))
  if (promptText) output.print(`${output.paint('bold', 'told')}\n${indent(plain(promptText))}`)
  output.print(output.paint('bold', 'had seen'))
  for (const { index, kind, by, text: said } of seen) {
    output.print(
      `  ${String(index).padStart(4)} ${kind.padEnd(11)} ${oneLine([by && `${by}:`, said].filter(Boolean).join(' '))}`,
    )
  }
}

function about({ chunk, index, kind, by, branch, tool, model, prompt, at }: Producer): string {
  const facts = [
    `chunk ${index} ${chunk.slice(0, 12)} (${tool ?? kind})`,
    by && `by ${by}`,
    branch && `branch ${branch}`,
    model && `model ${model}`,
    prompt && `prompt ${prompt.slice(0, 12)}`,
    ago(at),
  ]
  return plain(facts.filter(Boolean).join(', '))
}

function whence({ source, producer }: BlamedLine): string {
  if (source === 'before' || producer === undefined) return 'there before'
  const who = source === 'drift' ? 'somebody else' : (producer.by ?? source)
  return oneLine(`${producer.chunk.slice(0, 8)} ${who}${producer.branch ? ` ${producer.branch}` : ''}`, 40)
}

/** The newest run that says it changed the file. */
async function sessionFor(path: string, { session }: Options, store: Store): Promise<Session> {
  if (session !== undefined) return store.sessions.get(await findSession(store, session))
  for (const { output } of await store.runs.list({ limit: 100 })) {
    if (output === null) continue
    const made = await store.sessions.get(output)
    const wanted = pathIn(made, path)
    const changed = made.chunks
      .slice()
      .some(chunk => chunk.kind === 'tool-result' && chunk.files?.some(file => file.path === wanted))
    if (changed) return made
  }
  throw new UsageError(`no run has changed ${path}; name the session with --session if one of them has.`)
}

/** A path of this folder as the session's workspace has it. */
function pathIn({ placement }: Session, path: string): string {
  if (typeof placement?.spec !== 'string') return path
  const inside = relative(resolve(placement.spec), resolve(path))
  return inside === '' || inside.startsWith(`..${sep}`) || inside === '..' ? path : inside
}

function chunkNamed(session: Session, name: string): string | number {
  if (/^\d{1,9}$/.test(name)) return Number(name)
  return session.chunks.find(({ id }) => id.startsWith(name))?.id ?? name
}
