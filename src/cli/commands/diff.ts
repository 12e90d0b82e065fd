import type { Command } from 'commander'
import type { ChangedFile } from '../../session/diff.ts'
import type { Session } from '../../session/session.ts'
import { noUsage, type Usage } from '../../session/usage.ts'
import { chunkLines } from '../chunk-print.ts'
import { examples, type JsonOption, type StoreOption, withJson, withStore } from '../command.ts'
import { findSession } from '../names.ts'
import type { Output } from '../output.ts'
import { openToRead } from '../runtime.ts'
import { count, plain } from '../text.ts'

interface Options extends StoreOption, JsonOption {
  readonly patch?: boolean
}

export function define(command: Command, output: Output): void {
  command
    .argument('<a>', 'a session or run')
    .argument('<b>', 'another one')
    .option('-p, --patch', 'the patches of changed files, where they were recorded')
    .action((a: string, b: string, options: Options) => compare(a, b, options, output))
  withStore(withJson(command))
  examples(command, [
    ['rath diff 0198c2d1 0198c2d4', 'what each said and did since they parted'],
    ['rath diff calm bold --patch', 'two tagged branches, with what they wrote'],
  ])
}

async function compare(a: string, b: string, options: Options, output: Output): Promise<void> {
  await using store = await openToRead(options)
  const [ours, theirs] = [
    await store.sessions.get(await findSession(store, a)),
    await store.sessions.get(await findSession(store, b)),
  ]
  const diff = await ours.diff(theirs)
  const base = diff.shared === 0 ? noUsage : ours.rewind(diff.shared - 1).usage
  const spent = { ours: since(base, ours.usage), theirs: since(base, theirs.usage) }
  if (options.json) return output.json({ ...diff, sessions: { ours: ours.id, theirs: theirs.id }, spent })
  const ancestor =
    diff.ancestor === undefined
      ? 'nothing'
      : `${count(diff.shared, 'chunk')}, up to ${diff.ancestor.slice(0, 12)}`
  output.print(`shared   ${ancestor}`)
  const side = (name: 'ours' | 'theirs', session: Session) => {
    const { totalTokens, cost } = spent[name]
    const money = cost === undefined ? '' : `, $${cost.toFixed(4)}`
    output.print(
      output.paint(
        'bold',
        `${name === 'ours' ? '<' : '>'} ${session.id}  ${count(diff[name].length, 'chunk')}, ${count(totalTokens, 'token')}${money}`,
      ),
    )
    for (const chunk of diff[name]) output.print(chunkLines(chunk, output, false))
    for (const file of diff.files.filter(one => one.side === name))
      output.print(fileLines(file, options.patch ?? false))
  }
  side('ours', ours)
  side('theirs', theirs)
}

function fileLines({ change, path, from, patch }: ChangedFile, withPatch: boolean): string {
  const line = `     ${change.padEnd(9)} ${plain(from ? `${from} → ${path}` : path)}`
  return withPatch && patch ? `${line}\n${plain(patch)}` : line
}

function since(base: Usage, now: Usage): { totalTokens: number; cost?: number } {
  const totalTokens = now.totalTokens - base.totalTokens
  return now.cost === undefined ? { totalTokens } : { totalTokens, cost: now.cost - (base.cost ?? 0) }
}
