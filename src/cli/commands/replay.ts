import { type Command, Option } from 'commander'
import type { ReplayMode, ReplayReport } from '../../run/replay/replay.ts'
import { examples, type JsonOption, type StoreOption, withJson, withStore } from '../command.ts'
import { exit } from '../errors.ts'
import type { Output } from '../output.ts'
import { whileWorking } from '../progress.ts'
import { openRuntime } from '../run-runtime.ts'
import { count, indent, oneLine, plain } from '../text.ts'
import { askAboutConfig } from '../trust.ts'
import { rowOf, workflowOf } from './resume.ts'

interface Options extends StoreOption, JsonOption {
  readonly mode: ReplayMode
  readonly file?: string
  readonly export?: string
}

export function define(command: Command, output: Output): void {
  command
    .argument('<run>', 'its id, the beginning or end of it, or last')
    .addOption(
      new Option(
        '--mode <mode>',
        'strict: nothing but the record; tools: run tools again; model: ask the model again',
      )
        .choices(['strict', 'tools', 'model'])
        .default('strict'),
    )
    .option('--file <file>', 'where its code is now, if it has moved')
    .option('-e, --export <name>', 'what that file exports it as')
    .action(async (name: string, options: Options) => {
      process.exitCode = await replay(name, options, output)
    })
  withStore(withJson(command))
  examples(command, [
    ['rath replay last', 'does the code still do what was recorded? No model is asked'],
    ['rath replay last --mode tools', 'do the tools still answer the same?'],
  ])
}

async function replay(name: string, options: Options, output: Output): Promise<number> {
  const row = await rowOf(name, options)
  if (!options.json) await askAboutConfig(output)
  const workflow = await workflowOf(row, options, output)
  await using runtime = openRuntime(options)
  const report = await whileWorking(output, 'replaying', () =>
    runtime.replay(row.id, workflow, { mode: options.mode }),
  )
  if (options.json) {
    const { session, error, ...rest } = report
    output.json({
      ...rest,
      session: session?.id,
      error: error && { code: error.code, message: error.message },
    })
  } else print(report, output)
  return report.ok ? exit.done : exit.failed
}

function print(report: ReplayReport, output: Output): void {
  const { ok, run, served, recorded, status, divergence, unasked, tools, error } = report
  output.print(
    ok
      ? `${output.paint('green', 'same')}: run ${run} ended as it did (${status}), with ${count(served, 'effect')} from the record.`
      : `${output.paint('red', 'different')}: run ${run} was ${recorded}, and its replay ${status}, with ${count(served, 'effect')} from the record.`,
  )
  if (divergence) {
    output.print(plain(divergence.message))
    if (divergence.diff) output.print(indent(plain(divergence.diff)))
  } else if (error && !ok) output.print(plain(error.message))
  for (const { kind, by, request } of unasked)
    output.print(`  not asked ${by} ${oneLine(`${kind} ${JSON.stringify(request)}`)}`)
  for (const { tool, args, by, same } of tools) {
    const found = same === undefined ? 'not run' : same ? 'same' : 'different'
    output.print(`  ${found.padEnd(9)} ${by} ${oneLine(`${tool} ${JSON.stringify(args)}`)}`)
  }
}
