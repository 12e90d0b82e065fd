import { resolve } from 'node:path'
import type { Command } from 'commander'
import { examples, type JsonOption, type StoreOption, withJson, withStore } from '../command.ts'
import { findSession } from '../names.ts'
import type { Output } from '../output.ts'
import { openRuntime } from '../run-runtime.ts'
import { missingStore, openToRead } from '../runtime.ts'

interface Options extends StoreOption, JsonOption {}

export function define(command: Command, output: Output): void {
  command
    .argument('<name>', 'a session or run that worked on files')
    .argument(
      '<folder>',
      'where to bring them; made if it is not there. What is there is kept before it is replaced',
    )
    .action((name: string, folder: string, options: Options) => checkout(name, folder, options, output))
  withStore(withJson(command))
  examples(command, [
    ['rath checkout last ./copy', 'the files as the newest run left them, in a folder of their own'],
    ['rath checkout 0198c2d1 .', 'in this folder; what was here can be brought back by its tree'],
  ])
}

async function checkout(name: string, folder: string, options: Options, output: Output): Promise<void> {
  // Says so when there is no store, and makes none.
  if (missingStore(options) !== undefined) await openToRead(options)
  await using runtime = openRuntime(options)
  const store = await runtime.store
  const session = await store.sessions.get(await findSession(store, name))
  const target = resolve(folder)
  const before = await runtime.checkout(session, target)
  if (options.json) return output.json({ session: session.id, folder: target, before })
  output.print(`The files of session ${session.id} are in ${target}.`)
  output.tell(output.paint('dim', `What was there is kept as tree ${before}.`, output.stderr))
}
