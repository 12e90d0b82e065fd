import { relative, resolve, sep } from 'node:path'
import type { Command } from 'commander'
import { blame, printBlamedChunk, printBlamedLines } from '../../evidence/blame.ts'
import type { Session } from '../../session/session.ts'
import type { Store } from '../../store/spec.ts'
import { examples, type JsonOption, type StoreOption, withJson, withStore } from '../command.ts'
import { UsageError } from '../errors.ts'
import { findSession } from '../names.ts'
import type { Output } from '../output.ts'
import { openToRead } from '../runtime.ts'

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
  const lines = await blame(session, target, {
    store,
    ...(options.files && { workspaces: options.files }),
  })
  if (options.json) return output.json({ session: session.id, path: target.path, lines })
  output.print(printBlamedLines(lines))
  const [only] = lines
  if (line !== undefined && only?.producer) {
    const { chunk, session: other } = only.producer
    const owner = other === undefined ? session : await store.sessions.get(other)
    output.print(printBlamedChunk(await blame(owner, { chunk }, { store })))
  }
}

async function blameChunk(name: string, chunk: string, options: Options, output: Output): Promise<void> {
  await using store = await openToRead(options)
  const session = await store.sessions.get(await findSession(store, name))
  const found = await blame(session, { chunk: chunkNamed(session, chunk) }, { store })
  if (options.json) return output.json({ session: session.id, ...found })
  output.print(printBlamedChunk(found))
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
