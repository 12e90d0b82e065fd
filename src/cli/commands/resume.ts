import type { Command } from 'commander'
import type { Workflow } from '../../flow/workflow.ts'
import type { RunModule } from '../../run/replay/resume.ts'
import { isSealed } from '../../run/replay/resume.ts'
import type { RunRow } from '../../store/spec.ts'
import { examples, type JsonOption, type StoreOption, withJson, withStore } from '../command.ts'
import { type DriveOptions, drive } from '../drive.ts'
import { UsageError } from '../errors.ts'
import { findRun } from '../names.ts'
import type { Output } from '../output.ts'
import { openRuntime } from '../run-runtime.ts'
import { openToRead } from '../runtime.ts'
import { plain } from '../text.ts'
import { askAboutConfig, askYes, isAtTerminal } from '../trust.ts'
import { loadModel, loadWorkflow } from '../workflow-file.ts'

export interface ResumeOptions extends StoreOption, JsonOption, DriveOptions {
  readonly file?: string
  readonly export?: string
  readonly model?: string
  readonly movedTo?: string
}

export function define(command: Command, output: Output): void {
  command
    .argument('<run>', 'its id, the beginning or end of it, or last')
    .option('--file <file>', 'where its code is now, if it has moved')
    .option('-e, --export <name>', 'what that file exports it as')
    .option('-m, --model <model>', 'ask this model from here on; that of rath run --model by default')
    .option(
      '--moved-to <folder>',
      'the project was moved here on purpose; without it a run goes on where it began',
    )
    .option('--ask', 'ask for approvals here, and do not park the run')
    .option('--tag <tag>', 'name the session that comes out')
    .option('--accept-altered', 'go ahead with a session that is not as it was recorded; the record says so')
    .option('-q, --quiet', 'only the answer')
    .action(async (name: string, options: ResumeOptions) => {
      process.exitCode = await resume(name, options, output)
    })
  withStore(withJson(command))
  examples(command, [
    ['rath resume last', 'go on with the newest run'],
    ['rath resume 0198c2d1 --file ./src/review.ts', 'its code is elsewhere now'],
    ['rath resume last --moved-to ~/work/app', 'its files are elsewhere now'],
  ])
}

/** Goes on with a run. What is on record is not done again. */
export async function resume(name: string, options: ResumeOptions, output: Output): Promise<number> {
  const row = await rowOf(name, options)
  if (!options.json) await askAboutConfig(output)
  const workflow = await workflowOf(row, options, output)
  await using runtime = openRuntime(options)
  const moved = options.movedTo === undefined ? {} : { movedTo: options.movedTo }
  const work = {
    id: () => row.id,
    start: (call: object) => runtime.resume(row.id, workflow, { ...call, ...moved }),
  }
  return await drive(work, runtime, options, output)
}

/** The row of a run, read before its code is loaded: that code may open the same store. */
export async function rowOf(name: string, options: StoreOption): Promise<RunRow> {
  await using store = await openToRead(options)
  return await findRun(store, name)
}

/** The workflow of a run, with its model: where the command line says, else where the run was begun. */
export async function workflowOf(
  { id, data }: RunRow,
  options: Pick<ResumeOptions, 'file' | 'export' | 'model'>,
  output: Output,
): Promise<Workflow> {
  const recorded = (data.module ?? {}) as Partial<RunModule>
  const isOurs = isSealed(data.module)
  const file = options.file ?? recorded.file
  if (file === undefined) {
    throw new UsageError(`run ${id} does not say where its code is; say so with --file FILE.ts.`)
  }
  if (options.file === undefined && !isOurs) await agreeTo(file, id, output)
  const { workflow } = await loadWorkflow(file, options.export ?? recorded.export)
  // A model may be a file, which is code too.
  const model = options.model ?? (isOurs ? recorded.model : undefined)
  if (model !== undefined) workflow.to(await loadModel(model))
  return workflow
}

/** A record may have come with a folder, and the code that it names would run as this user. */
async function agreeTo(file: string, run: string, output: Output): Promise<void> {
  const why = `run ${run} names the code ${plain(file)}, but no run of this user wrote that: its store came from elsewhere, or was written by somebody else.`
  const how = 'Look at the file, then name it with --file.'
  if (!isAtTerminal(output)) throw new UsageError(`${why} ${how}`)
  output.print(`${why[0]?.toUpperCase()}${why.slice(1)}`)
  if ((await askYes('Load it and run it as you? [y]es, [n]o: ', output)) === 'yes') return
  throw new UsageError(`the code of run ${run} was not loaded. ${how}`)
}
