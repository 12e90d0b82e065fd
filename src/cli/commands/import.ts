import { createReadStream } from 'node:fs'
import type { Command } from 'commander'
import { RathError } from '../../base/errors.ts'
import { importBundle } from '../../evidence/bundle/import.ts'
import { readBundle } from '../../evidence/bundle/read.ts'
import { verifyBundle } from '../../evidence/bundle/verify.ts'
import { openStore } from '../../run/open-store.ts'
import { readSessions } from '../../session/stream.ts'
import { examples, type JsonOption, type StoreOption, withJson, withStore } from '../command.ts'
import type { Output } from '../output.ts'
import { storeAddress } from '../runtime.ts'
import { count } from '../text.ts'

interface Options extends StoreOption, JsonOption {}

export function define(command: Command, output: Output): void {
  command
    .argument('<file>', 'a bundle of rath export, a session file, or one of OpenRath Python')
    .action((file: string, options: Options) => take(file, options, output))
  withStore(withJson(command))
  examples(command, [
    ['rath import run.jsonl', 'what somebody sent you, checked on the way'],
    ['rath import session.jsonl --store sqlite:old.db', 'into another store'],
  ])
}

async function take(file: string, options: Options, output: Output): Promise<void> {
  // Read and checked as a whole before the store is touched.
  const bundle = await read(file)
  await using store = await openStore(storeAddress(options))
  const report = await importBundle(bundle, store)
  if (options.json) return output.json(report)
  const { sessions, runs, skipped } = report
  output.print(`${count(sessions.length, 'session')} and ${count(runs.length, 'run')} from ${file}.`)
  if (skipped.length > 0) output.print(`${count(skipped.length, 'run')} there already, left as they are.`)
  for (const id of sessions.slice(-3)) output.print(`  ${id}`)
}

/** A file of OpenRath Python has no digests to check; it is read as such when it is no file of ours. */
async function read(file: string): Promise<Parameters<typeof importBundle>[0]> {
  try {
    return await readBundle(createReadStream(file))
  } catch (error) {
    const isOurs =
      !(error instanceof RathError) || error.code !== 'bundle-altered' || (await beginsLikeOurs(file))
    if (isOurs) throw error
  }
  const sessions = []
  for await (const session of readSessions(createReadStream(file))) sessions.push(session)
  return { sessions, runs: [], verification: await verifyBundle(createReadStream(file)) }
}

async function beginsLikeOurs(file: string): Promise<boolean> {
  for await (const piece of createReadStream(file, { end: 400, encoding: 'utf8' })) {
    return /"format"\s*:\s*"openrath\/(bundle|session)"/.test(piece)
  }
  return true
}
