import { existsSync } from 'node:fs'
import { join } from 'node:path'
import type { Command } from 'commander'
import { bringFiles, openKeptFiles } from '../../evidence/kept-files.ts'
import { compareSessions, printSessionDiff, type SessionComparison } from '../../evidence/session-diff.ts'
import { Workspaces } from '../../run/place/workspaces.ts'
import { examples, type JsonOption, type StoreOption, withJson, withStore } from '../command.ts'
import { findSession } from '../names.ts'
import type { Output } from '../output.ts'
import { openToRead } from '../runtime.ts'
import { plain } from '../text.ts'

interface Options extends StoreOption, JsonOption {
  readonly patch?: boolean
}

export function define(command: Command, output: Output): void {
  command
    .argument('<a>', 'a session or run')
    .argument('<b>', 'another one')
    .option('-p, --patch', 'what each wrote, as patches')
    .action((a: string, b: string, options: Options) => compare(a, b, options, output))
  withStore(withJson(command))
  examples(command, [
    ['rath diff 0198c2d1 0198c2d4', 'what each said, did and spent since they parted'],
    ['rath diff calm bold --patch', 'two tagged branches, with what they wrote'],
  ])
}

async function compare(a: string, b: string, options: Options, output: Output): Promise<void> {
  await using store = await openToRead(options)
  const ours = await store.sessions.get(await findSession(store, a))
  const theirs = await store.sessions.get(await findSession(store, b))
  for (const session of [ours, theirs]) await bringFiles(session, store)
  const comparison = await compareSessions(ours, theirs, await keptFiles())
  if (options.json) return output.json(comparison)
  output.print(printSessionDiff(comparison))
  if (options.patch) for (const patch of patchesOf(comparison)) output.print(plain(patch))
}

/** Where nothing was kept, the tool calls say what they changed. */
async function keptFiles() {
  return existsSync(join(new Workspaces().folder, 'objects')) ? openKeptFiles() : undefined
}

function patchesOf({ ours, theirs }: SessionComparison): string[] {
  return [ours, theirs].flatMap(({ session, files }) =>
    files.flatMap(({ path, patch }) => (patch ? [`${session} ${path}\n${patch}`] : [])),
  )
}
