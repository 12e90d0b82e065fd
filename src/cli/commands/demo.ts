import { mkdtempSync, realpathSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Command } from 'commander'
import { type DemoPlace, findPlace } from '../../demo/place.ts'
import { noteFromLastWeek, taskFor, writeRepository } from '../../demo/repository.ts'
import { FixIssue, LiveFixIssue } from '../../demo/workflow.ts'
import { dossierOf } from '../../evidence/dossier/dossier-of.ts'
import { dossierHtml } from '../../evidence/dossier/html/page.ts'
import { localMemory } from '../../memory/drivers/local/local-memory.ts'
import type { CallOptions } from '../../run/context.ts'
import type { PendingSession } from '../../run/pending-session.ts'
import type { RunOptions, Runtime } from '../../run/runtime.ts'
import { Session } from '../../session/session.ts'
import { examples } from '../command.ts'
import { DemoStory } from '../demo/story.ts'
import { linkCommand, nextCommands } from '../demo/next-commands.ts'
import { openFile } from '../demo/open-file.ts'
import { exit } from '../exit.ts'
import type { Output } from '../output.ts'
import { openRuntime } from '../run-runtime.ts'
import { count, duration } from '../text.ts'
import { surroundings } from './dossier.ts'

interface Options {
  readonly live?: boolean
  readonly open?: boolean
}

export function define(command: Command, output: Output): void {
  command
    .option('--live', 'ask a real model: the one that your environment or config file names')
    .option('--open', 'open the dossier in your browser')
    .action(async (options: Options) => {
      process.exitCode = await demo(options, command.parent?.version() ?? '', output)
    })
  examples(command, [
    ['rath demo', 'two coders, two branches, real tests; a script stands for the model'],
    ['rath demo --live', 'the same task with a real model'],
  ])
}

async function demo({ live = false, open = false }: Options, version: string, output: Output): Promise<number> {
  const began = Date.now()
  const workflow = live ? new LiveFixIssue() : new FixIssue()
  // A key that is missing is said before anything is made.
  workflow.planner.model.credentials?.()
  const place = await findPlace()
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'openrath-demo-')))
  process.chdir(folder)
  writeRepository(folder)
  await rememberLastWeek()

  const story = new DemoStory(output)
  introduce({ folder, place, model: live ? workflow.planner.model.id : undefined }, output)
  await using runtime = openRuntime({})
  workflow.attempts.validator.onForward((_, __, judged) => story.last(judged, 'verdict'))
  workflow.attempts.onForward((_, __, joined) => story.last(joined, 'merge'))
  const module = { file: fileURLToPath(import.meta.resolve('../../demo/workflow.js')), export: workflow.constructor.name }
  const asked = Session.fromUserMessage(taskFor(place.node)).to(place.backend, folder)
  const begin: CallOptions & RunOptions = { module, onEvent: story.onEvent }
  const pending = runtime.run<CallOptions, PendingSession>(workflow, asked, begin)
  const session = await pending
  const took = Date.now() - began

  const merged = await tagBranches(session, runtime)
  const dossier = await dossierOf(await runtime.store, pending.runId, await surroundings(version))
  const page = join(folder, 'dossier.html')
  writeFileSync(page, dossierHtml(dossier))
  story.heading('What came of it')
  for (const { patch } of dossier.patch.files) story.patch(patch?.text ?? '')
  for (const { name, status, reason } of dossier.branches) output.print(`${name}: ${status}. ${reason}`)
  const tokens = `${count(session.usage.totalTokens, 'token')}${live ? '' : ' (scripted: a token for every four characters, and nothing is billed)'}`
  output.print(`${duration(took)}, ${tokens}`)
  output.print(`dossier: ${page}`)
  linkCommand(folder)
  story.heading('Look into it yourself')
  output.print(nextCommands({ folder, branches: merged }))
  if (open) openFile(page)
  return merged.some(({ verdict }) => verdict === 'accept') ? exit.done : exit.failed
}
