import { createReadStream, statSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import type { Command } from 'commander'
import { printVerification } from '../../evidence/bundle/print-verification.ts'
import { verifyBundle } from '../../evidence/bundle/verify.ts'
import { examples, type JsonOption, type StoreOption, withJson, withStore } from '../command.ts'
import { UsageError } from '../errors.ts'
import { exit } from '../exit.ts'
import { findSession } from '../names.ts'
import type { Output } from '../output.ts'
import { whileWorking } from '../progress.ts'
import { openToRead } from '../runtime.ts'
import { count, plain } from '../text.ts'

interface Options extends StoreOption, JsonOption {
  readonly key?: readonly string[]
}

export function define(command: Command, output: Output): void {
  command
    .argument('<name>', 'a file of rath export, or a session or run of the store')
    .option('--key <files...>', 'public keys in PEM; one of them must have signed it')
    .action(async (name: string, options: Options) => {
      process.exitCode = isFile(name)
        ? await verifyFile(name, options, output)
        : await verifyKept(name, options, output)
    })
  withStore(withJson(command))
  examples(command, [
    ['rath verify run.jsonl', 'recompute every digest, from the file alone'],
    ['rath verify run.jsonl --key ada.pub.pem', 'and see that Ada signed it'],
    ['rath verify last', 'what the newest run made, in the store'],
  ])
}

/** A folder may be called like a session. */
function isFile(name: string): boolean {
  return statSync(name, { throwIfNoEntry: false })?.isDirectory() === false
}

async function verifyFile(file: string, { key = [], json }: Options, output: Output): Promise<number> {
  const keys = await Promise.all(key.map(path => readFile(path, 'utf8')))
  const result = await whileWorking(output, 'verifying', () => verifyBundle(createReadStream(file), { keys }))
  if (json) output.json(result)
  else output.print(printVerification(result))
  return result.ok ? exit.done : exit.failed
}

async function verifyKept(name: string, options: Options, output: Output): Promise<number> {
  if (options.key !== undefined) {
    throw new UsageError(
      `there is no file ${name}, and only files are signed: export ${name} with --sign, or leave out --key.`,
    )
  }
  await using store = await openToRead(options)
  const session = await store.sessions.get(await findSession(store, name))
  const result = session.verify()
  if (options.json) output.json({ session: session.id, head: session.head, ...result })
  else if (result.ok) {
    output.print(
      `${output.paint('green', 'ok')}: ${count(result.checked, 'chunk')} of session ${session.id}, head ${session.head}.`,
    )
  } else
    output.print(
      `${output.paint('red', 'altered')}: session ${session.id}: ${plain(result.problem?.reason ?? '')}`,
    )
  return result.ok ? exit.done : exit.failed
}
