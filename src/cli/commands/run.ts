import { resolve } from 'node:path'
import { text as readAll } from 'node:stream/consumers'
import type { Command } from 'commander'
import type { CallOptions } from '../../run/context.ts'
import type { PendingSession } from '../../run/pending-session.ts'
import type { RunOptions, Runtime } from '../../run/runtime.ts'
import { Session } from '../../session/session.ts'
import { examples, type JsonOption, type StoreOption, withJson, withStore } from '../command.ts'
import { type DriveOptions, drive } from '../drive.ts'
import { UsageError } from '../errors.ts'
import { findRun } from '../names.ts'
import type { Output } from '../output.ts'
import { openRuntime } from '../run-runtime.ts'
import { askAboutConfig } from '../trust.ts'
import { loadModel, loadWorkflow, modelNamed } from '../workflow-file.ts'

interface Options extends StoreOption, JsonOption, DriveOptions {
  readonly export?: string
  readonly local?: string
  readonly isolated?: string
  readonly from?: string
  readonly model?: string
  readonly reuse?: string
}

export function define(command: Command, output: Output): void {
  command
    .argument('<file>', 'a TypeScript or JavaScript file that exports a Workflow or an Agent')
    .argument('[input...]', 'what the user says; - reads it from standard input')
    .option('-e, --export <name>', 'the export to run; default by default')
    .option('-m, --model <model>', 'a model for everything in it: openai/gpt-5.5, or a file that exports one')
    .option('--local <folder>', 'tools work in this folder')
    .option('--isolated <folder>', 'the same behind walls, where the machine can')
    .option('--from <session>', 'go on from a kept session')
    .option('--reuse <run>', 'borrow the outcomes of another run where nothing has changed')
    .option('--ask', 'ask for approvals here, and do not park the run')
    .option('--tag <tag>', 'name the session that comes out')
    .option('--accept-altered', 'go ahead with a session that is not as it was recorded; the record says so')
    .option('-q, --quiet', 'only the answer')
    .action(async (file: string, input: string[], options: Options) => {
      process.exitCode = await runFile(file, input, options, output)
    })
  withStore(withJson(command))
  examples(command, [
    ['rath run review.ts "Look at the parser."', 'what the file exports by default'],
    ['rath run review.ts --local . "Fix the tests."', 'with tools in this folder'],
    ['git diff | rath run review.ts -', 'the input from another command'],
    ['rath run agents.ts --export critic --json "…"', 'one of several, for a script'],
    ['rath run review.ts --reuse last "…"', 'after an edit: only what changed is paid for'],
  ])
}

async function runFile(file: string, words: string[], options: Options, output: Output): Promise<number> {
  if (!options.json) await askAboutConfig(output)
  const { workflow, module: code } = await loadWorkflow(file, options.export)
  const model = options.model === undefined ? undefined : modelNamed(options.model)
  if (model !== undefined) workflow.to(await loadModel(model))
  const module = { ...code, ...(model !== undefined && { model }) }
  await using runtime = openRuntime(options)
  const session = placed(await inputOf(words, options, runtime), options)
  const reuse = options.reuse && (await findRun(await runtime.store, options.reuse)).id
  let pending: PendingSession | undefined
  const work = {
    id: () => pending?.runId ?? '',
    start(call: CallOptions) {
      const begin: CallOptions & RunOptions = { ...call, module, ...(reuse && { reuse }) }
      pending = runtime.run<CallOptions, PendingSession>(workflow, session, begin)
      return pending
    },
  }
  return await drive(work, runtime, options, output)
}

async function inputOf(words: readonly string[], { from }: Options, runtime: Runtime): Promise<Session> {
  const said = words.length === 1 && words[0] === '-' ? await readAll(process.stdin) : words.join(' ')
  if (from === undefined) return said === '' ? Session.create('empty') : Session.fromUserMessage(said)
  const before = await runtime.sessions.get(from)
  return said === '' ? before : before.user(said)
}

function placed(session: Session, { local, isolated }: Options): Session {
  if (local !== undefined && isolated !== undefined) {
    throw new UsageError('--local and --isolated both say where tools work; give one of them.')
  }
  if (isolated !== undefined) return session.to('isolated', resolve(isolated))
  return local === undefined ? session : session.to('local', resolve(local))
}
