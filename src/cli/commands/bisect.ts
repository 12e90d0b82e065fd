import type { Command } from 'commander'
import { RathError } from '../../base/errors.ts'
import type { JsonObject } from '../../base/json.ts'
import { bisect, printBisection, printProbe } from '../../evidence/bisect.ts'
import type { Answer } from '../../evidence/search-first.ts'
import { SandboxRegistry } from '../../sandbox/registry.ts'
import type { Sandbox, SandboxBackend } from '../../sandbox/spec.ts'
import type { Placement } from '../../session/placement.ts'
import { examples, type JsonOption, type StoreOption, withJson, withStore } from '../command.ts'
import { exit, UsageError } from '../errors.ts'
import { findSession } from '../names.ts'
import type { Output } from '../output.ts'
import { whileWorking } from '../progress.ts'
import { openToRead } from '../runtime.ts'

interface Options extends StoreOption, JsonOption {
  readonly local?: boolean
  readonly isolated?: boolean
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
    .option('--isolated', 'the command sees the files and no network; by default where the run did')
    .option(
      '--local',
      'the command runs on this machine as you, without your keys; by default where the run did',
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
  const place = await placeOf(session.placement, options)
  if (!options.json) output.tell(place.said)
  const abort = new AbortController()
  const interrupt = () => abort.abort(new Error('cancelled with Ctrl-C'))
  process.on('SIGINT', interrupt).on('SIGTERM', interrupt)
  const found = await whileWorking(output, 'checking', progress =>
    bisect(session, folder => check(words, folder, place, abort.signal, options), {
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

interface CheckPlace {
  open(folder: string, signal: AbortSignal): Promise<Sandbox>
  readonly said: string
}

/**
 * The command runs what agents wrote, so it runs as they did. Of what the run allowed it gets neither the network nor variables of yours: the answer
 * to a question is no reason to hand out keys.
 */
async function placeOf(
  placement: Placement | undefined,
  { local, isolated: wanted }: Options,
): Promise<CheckPlace> {
  if (local && wanted)
    throw new UsageError('--local and --isolated both say where it runs; give one of them.')
  const registry = new SandboxRegistry()
  const isolated = registry.get('isolated')
  const given = typeof placement?.spec === 'object' ? placement.spec : {}
  const opened = (backend: SandboxBackend, spec: JsonObject, said: string): CheckPlace => ({
    open: (path, signal) =>
      (backend.openIn as NonNullable<typeof backend.openIn>)({ path }, spec, { signal }),
    said,
  })
  const asYou = 'The command runs local: on this machine as you, without your keys.'
  const ranLocal = placement?.backend === 'local' && !wanted
  if (local || ranLocal) return opened(registry.get('local'), {}, asYou)
  const { available, reason = '' } = (await isolated.probe?.()) ?? { available: true }
  if (available) {
    const { env, read, limits } = placement?.backend === 'isolated' ? given : {}
    const spec = { ...(env && { env }), ...(read && { read }), ...(limits && { limits }) }
    return opened(isolated, spec, 'The command runs isolated: it sees the files of the run and no network.')
  }
  throw new RathError(
    'sandbox-unavailable',
    `What agents of this run wrote would run isolated, and that does not work here: ${reason} With --local it runs as you.`,
  )
}

/** Exit codes as `git bisect run` takes them. */
async function check(
  words: readonly string[],
  folder: string,
  place: CheckPlace,
  signal: AbortSignal,
  { verbose, json }: Options,
): Promise<Answer> {
  await using sandbox = await place.open(folder, signal)
  const running = sandbox.exec(words.length === 1 ? (words[0] as string) : words, { signal })
  if (verbose) {
    for await (const { stream, data } of running) {
      const to = stream === 'stderr' ? process.stderr : json ? undefined : process.stdout
      to?.write(data)
    }
  }
  const { exitCode, signal: killedBy } = await running.result
  const code = exitCode ?? 128
  if (code === 0 || signal.aborted) return 'pass'
  if (code <= 125) return code === 125 ? 'skip' : 'fail'
  const how = killedBy ? `was killed by ${killedBy}` : `ended with ${code}`
  throw new UsageError(
    `${words.join(' ')} ${how}, which says nothing about the files: exit codes 1 to 124 say that they are broken, 125 that nobody can tell.`,
  )
}
