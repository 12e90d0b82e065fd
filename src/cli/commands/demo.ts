import { mkdtempSync, realpathSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Command } from 'commander'
import { platformOf } from '../../base/platform.ts'
import { findProgram, startSystem } from '../../base/programs.ts'
import { type DemoPlace, findPlace } from '../../demo/place.ts'
import { noteFromLastWeek, taskFor, writeRepository } from '../../demo/repository.ts'
import { verdictOn } from '../../demo/validator.ts'
import { FixIssue, LiveFixIssue, workflowFile } from '../../demo/workflow.ts'
import { dossierOf } from '../../evidence/dossier/dossier-of.ts'
import { dossierHtml } from '../../evidence/dossier/html/page.ts'
import { localMemory } from '../../memory/drivers/local/local-memory.ts'
import type { CallOptions } from '../../run/context.ts'
import type { PendingSession } from '../../run/pending-session.ts'
import type { RunOptions, Runtime } from '../../run/runtime.ts'
import { Session } from '../../session/session.ts'
import { examples, type JsonOption, withJson } from '../command.ts'
import { type JudgedBranch, linkCommand, nextCommands } from '../demo/next-commands.ts'
import { DemoStory } from '../demo/story.ts'
import { exit } from '../exit.ts'
import { Output } from '../output.ts'
import { openRuntime } from '../run-runtime.ts'
import { count, duration, oneLine } from '../text.ts'
import { surroundings } from './dossier.ts'

interface Options extends JsonOption {
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
  withJson(command)
  examples(command, [
    ['rath demo', 'two coders, two branches, real tests; a script stands for the model'],
    ['rath demo --live', 'the same task with a real model'],
  ])
}

async function demo({ live, open, json }: Options, version: string, output: Output): Promise<number> {
  const began = Date.now()
  const workflow = live ? new LiveFixIssue() : new FixIssue()
  // A key that is missing is said before anything is made.
  workflow.planner.model.credentials?.()
  const place = await findPlace()
  const folder = await makeFolder()
  // For a program the story is what is said about the result.
  const { stderr } = output
  const told = json ? new Output({ stdout: stderr, stderr, env: process.env }) : output
  told.print(introduction(folder, place, live ? workflow.planner.model.id : undefined))

  const story = new DemoStory(told)
  story.heading('What they do')
  await using runtime = openRuntime({})
  const { runId, session } = await follow(workflow, taskSession(folder, place), runtime, story).catch(
    error => {
      linkCommand(folder)
      told.print(`\nIt stopped, and what was done is kept. Go on: cd ${folder} && npx rath resume last`)
      throw error
    },
  )
  const branches = await tagBranches(session, runtime)
  const dossier = await dossierOf(await runtime.store, runId, await surroundings(version))
  const page = join(folder, 'dossier.html')
  writeFileSync(page, dossierHtml(dossier))
  linkCommand(folder)

  story.heading('What came of it')
  for (const { path, patch } of dossier.patch.files) {
    told.print(`${path} is changed in the folder:`)
    story.patch(patch?.text ?? '')
  }
  for (const { branch, verdict, reason } of branches)
    told.print(`${branch}: ${verdict}ed. ${oneLine(reason, 300)}`)
  const counted = live ? '' : ' (of a script, at four characters each; nothing is billed)'
  told.print(`${duration(Date.now() - began)}, ${count(session.usage.totalTokens, 'token')}${counted}`)
  told.print(`The dossier, one page with all of it: ${page}`)

  const commands = nextCommands(session, branches)
  story.heading('Look into it yourself')
  told.print(
    [`  cd ${folder}`, ...commands.map(([line, purpose]) => `  ${line}\n      ${purpose}`)].join('\n'),
  )
  if (json)
    output.json({ folder, run: runId, session: session.id, branches, dossier: page, usage: session.usage })
  if (open) openFile(page)
  return branches.some(({ verdict }) => verdict === 'accept') ? exit.done : exit.failed
}

/** The small repository, in a folder of its own that the process works in from here on. */
async function makeFolder(): Promise<string> {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'openrath-demo-')))
  process.chdir(folder)
  writeRepository(folder)
  const memory = await localMemory().open()
  await memory.write([{ text: noteFromLastWeek, at: Date.now() - week }])
  await memory.close()
  return folder
}

const week = 7 * 24 * 3600 * 1000

function taskSession(folder: string, { backend, node }: DemoPlace): Session {
  return Session.fromUserMessage(taskFor(node)).to(backend, folder)
}

function introduction(folder: string, { backend, reason }: DemoPlace, model: string | undefined): string {
  const walls = backend === 'isolated' ? 'behind walls (isolated)' : `without walls (local): ${reason}`
  return [
    `A small repository with failing tests is in ${folder}.`,
    'Agents are asked to mend it. Files, edits, tests, branches, memory and the record are real.',
    model === undefined
      ? 'The model is not: a script answers in its place, so that this needs no key. --live asks a real one.'
      : `The model is ${model}.`,
    `Commands run ${walls}. One note is put into memory first, as if it were from last week.`,
  ].join('\n')
}

async function follow(
  workflow: FixIssue,
  asked: Session,
  runtime: Runtime,
  story: DemoStory,
): Promise<{ runId: string; session: Session }> {
  const { attempts } = workflow
  const told = (kind: 'verdict' | 'merge') => (_: unknown, __: Session, made: Session) => {
    const chunk = made.chunks.at(-1)
    if (chunk?.kind === kind) story.chunk(chunk)
  }
  using _ = attempts.validator.onForward(told('verdict'))
  using __ = attempts.onForward(told('merge'))
  const options: CallOptions & RunOptions = {
    module: { file: workflowFile, export: workflow.constructor.name },
    onEvent: story.onEvent,
  }
  const pending = runtime.run<CallOptions, PendingSession>(workflow, asked, options)
  const session = await pending
  return { runId: pending.runId, session }
}

/** Gives the branches that were judged their names, so that commands can be told them. */
async function tagBranches(session: Session, { sessions }: Runtime): Promise<JudgedBranch[]> {
  const merge = session.chunks.findLast(chunk => chunk.kind === 'merge')
  const judged: JudgedBranch[] = []
  for (const { branch, session: id } of merge?.branches ?? []) {
    await sessions.tag(id, branch)
    const { verdict = 'reject', reason = '' } = verdictOn(await sessions.get(id)) ?? {}
    judged.push({ branch, session: id, verdict, reason })
  }
  return judged
}

function openFile(path: string): void {
  const { opener } = platformOf()
  if (findProgram(opener) === undefined) return
  // What a program needs to find the desktop.
  const env = Object.fromEntries(
    Object.entries(process.env).filter(([name]) =>
      /^(HOME|USER|DISPLAY|WAYLAND_DISPLAY|XAUTHORITY|XDG_\w+|DBUS_SESSION_BUS_ADDRESS)$/.test(name),
    ),
  )
  startSystem(opener, [path], { env, stdio: 'ignore', detached: true })
    .on('error', () => {})
    .unref()
}
