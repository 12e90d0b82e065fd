import { mkdirSync, mkdtempSync, realpathSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Command } from 'commander'
import { platformOf } from '../../base/platform.ts'
import { findProgram, startSystem } from '../../base/programs.ts'
import { type DemoPlace, findPlace } from '../../demo/place.ts'
import { noteFromLastWeek, passingTests, taskFor, writeRepository } from '../../demo/repository.ts'
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
import { DemoStory } from '../demo/story.ts'
import { exit } from '../errors.ts'
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

/** A branch that was merged, or left out, and what was said of it. Its session has the branch's name as its tag. */
interface JudgedBranch {
  readonly branch: string
  readonly session: string
  readonly verdict: 'accept' | 'reject'
  readonly reason: string
}

/** Lets `npx rath` in a folder be this very command, with the Node that it runs on. */
function linkCommand(folder: string): void {
  const bin = join(folder, 'node_modules', '.bin')
  const main = realpathSync(process.argv[1] as string)
  mkdirSync(bin, { recursive: true })
  writeFileSync(join(bin, 'rath'), `#!/bin/sh\nexec '${process.execPath}' '${main}' "$@"\n`, { mode: 0o755 })
}

/** What to type next, a line each with what it is for. */
function nextCommands(
  session: Session,
  branches: readonly JudgedBranch[],
): [line: string, purpose: string][] {
  const line = changedLine(session)
  const broken = branches.flatMap(({ branch, verdict, reason }) => {
    const test = passingTests.find(name => verdict === 'reject' && reason.includes(`"${name}"`))
    return test === undefined ? [] : [{ branch, test }]
  })
  return [
    ['npx rath replay last', 'the whole run again from its record: nothing is asked, nothing is run'],
    ...(line === undefined
      ? []
      : [[`npx rath blame ${line}`, 'who wrote that line, and from what'] as [string, string]]),
    ...broken
      .slice(0, 1)
      .map(({ branch, test }): [string, string] => [
        `npx rath bisect ${branch} -- node --test --test-name-pattern="${test}"`,
        'which edit broke that test',
      ]),
    ['npx rath dossier last --md', 'what happened, for a review'],
    ['npx rath resume last', 'goes on with a run; this one is done and gives its result'],
    ['npx rath memory list', 'what is remembered now'],
  ]
}

/** The first line that the last edit changed, as `FILE:LINE`. */
function changedLine(session: Session): string | undefined {
  const edit = session.chunks.findLast(
    chunk => chunk.kind === 'tool-result' && (chunk.files?.length ?? 0) > 0,
  )
  const file =
    edit?.kind === 'tool-result' ? edit.files?.find(({ change }) => change !== 'deleted') : undefined
  const lines = file?.patch?.split('\n') ?? []
  let at = 0
  for (const text of lines) {
    const [, start] = /^@@ -\S+ \+(\d+)/.exec(text) ?? []
    if (start !== undefined) at = Number(start)
    else if (at > 0 && text.startsWith('+')) return `${file?.path}:${at}`
    else if (at > 0 && !text.startsWith('-')) at++
  }
  return undefined
}
