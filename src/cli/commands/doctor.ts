import type { Command } from 'commander'
import { examples, type JsonOption, type StoreOption, withJson, withStore } from '../command.ts'
import { type Finding, findings } from '../doctor.ts'
import { exit } from '../exit.ts'
import type { Output } from '../output.ts'
import { storeAddress } from '../runtime.ts'
import { plain } from '../text.ts'

interface Options extends StoreOption, JsonOption {}

export function define(command: Command, output: Output): void {
  command.action(async (options: Options) => {
    process.exitCode = await examine(options, output)
  })
  withStore(withJson(command))
  examples(command, [['rath doctor', 'what works here, and what to do about what does not']])
}

async function examine(options: Options, output: Output): Promise<number> {
  const found = await findings(storeAddress(options))
  const isWell = found.every(({ state }) => state !== 'broken')
  if (options.json) output.json({ ok: isWell, findings: found })
  else for (const finding of found) output.print(line(finding, output))
  return isWell ? exit.done : exit.failed
}

const marks = { ok: ['green', '✓'], missing: ['yellow', '–'], broken: ['red', '✗'] } as const

function line({ what, state, found, fix }: Finding, output: Output): string {
  const [style, mark] = marks[state]
  const text = `${output.paint(style, mark)} ${what.padEnd(22)} ${plain(found)}`
  return fix ? `${text}\n  ${' '.repeat(22)} ${output.paint('bold', 'fix:')} ${plain(fix)}` : text
}
