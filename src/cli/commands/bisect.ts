import type { Command } from 'commander'
import { startGiven } from '../../base/programs.ts'
import { bisect } from '../../evidence/bisect.ts'
import { printBisection, printProbe } from '../../evidence/print-bisect.ts'
import type { Answer } from '../../evidence/search-first.ts'
import { examples, type JsonOption, type StoreOption, withJson, withStore } from '../command.ts'
import { UsageError } from '../errors.ts'
import { exit } from '../exit.ts'
import { findSession } from '../names.ts'
import type { Output } from '../output.ts'
import { whileWorking } from '../progress.ts'
import { openToRead } from '../runtime.ts'

interface Options extends StoreOption, JsonOption {
  readonly every?: boolean
  readonly files?: string
  readonly verbose?: boolean
}

export function define(command: Command, output: Output): void {
  command
    .argument('<name>', 'a run or session that worked on files')
    .argument('<command...>', 'behind --: fails (exit code 1 to 124) where something is broken; 125 skips')
    .option('--every', 'check every state, and find every change for the worse')
    .option(
      '--files <folder>',
      'where files of workspaces were kept; by default where this machine keeps them',
    )
    .option('-v, --verbose', 'show what the command prints')
    .action(async (name: string, words: string[], options: Options) => {
      process.exitCode = await find(name, words, options, output)
    })
  withStore(withJson(command))
  examples(command, [
    ['rath bisect last -- npm test', 'the first step of the newest run after which the tests fail'],
    ['rath bisect last -- "grep -q door src/main.ts"', 'one word is a command line for the shell'],
  ])
}

async function find(
  name: string,
  words: readonly string[],
  options: Options,
  output: Output,
): Promise<number> {
  await using store = await openToRead(options)
  const session = await store.sessions.get(await findSession(store, name))
  const abort = new AbortController()
  const interrupt = () => abort.abort(new Error('cancelled with Ctrl-C'))
  process.on('SIGINT', interrupt).on('SIGTERM', interrupt)
  const found = await whileWorking(output, 'checking', progress =>
    bisect(session, folder => check(words, folder, abort.signal, options), {
      store,
      every: options.every ?? false,
      signal: abort.signal,
      ...(options.files && { workspaces: options.files }),
      onCheck: probe => progress.line(printProbe(probe)),
    }),
  ).finally(() => process.off('SIGINT', interrupt).off('SIGTERM', interrupt))
  if (options.json) output.json({ session: session.id, ...found })
  else output.print(printBisection(found))
  return found.result === 'passes' || found.result === 'found' ? exit.done : exit.failed
}

/** Exit codes as `git bisect run` takes them. */
async function check(
  words: readonly string[],
  folder: string,
  signal: AbortSignal,
  { verbose, json }: Options,
): Promise<Answer> {
  const [program = '', ...args] = words
  const stream = verbose ? 'inherit' : 'ignore'
  const child = startGiven(program, args, {
    cwd: folder,
    env: process.env,
    shell: words.length === 1,
    stdio: ['ignore', json ? 'ignore' : stream, stream],
  })
  const stop = () => child.kill()
  signal.addEventListener('abort', stop, { once: true })
  const [code, killedBy] = await new Promise<readonly [number, string | null]>((resolve, reject) => {
    child.on('error', reject)
    child.on('close', (status, name) => resolve([status ?? 128, name]))
  }).finally(() => signal.removeEventListener('abort', stop))
  if (code === 0 || signal.aborted) return 'pass'
  if (code <= 125) return code === 125 ? 'skip' : 'fail'
  const how = killedBy ? `was killed by ${killedBy}` : `ended with ${code}`
  throw new UsageError(
    `${words.join(' ')} ${how}, which says nothing about the files: exit codes 1 to 124 say that they are broken, 125 that nobody can tell.`,
  )
}
