import { createReadStream, existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import type { Command } from 'commander'
import type { BundleVerification } from '../../evidence/bundle/verification.ts'
import { verifyBundle } from '../../evidence/bundle/verify.ts'
import { examples, type JsonOption, type StoreOption, withJson, withStore } from '../command.ts'
import { exit } from '../exit.ts'
import { findSession } from '../names.ts'
import type { Output } from '../output.ts'
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
      process.exitCode = existsSync(name)
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

async function verifyFile(file: string, { key = [], json }: Options, output: Output): Promise<number> {
  const keys = await Promise.all(key.map(path => readFile(path, 'utf8')))
  const result = await verifyBundle(createReadStream(file), { keys })
  if (json) output.json(result)
  else print(file, result, output)
  return result.ok ? exit.done : exit.failed
}

function print(file: string, result: BundleVerification, output: Output): void {
  const { ok, format, sessions, chunks, runs, entries, signatures, absent, problem } = result
  const parts = [
    count(sessions, 'session'),
    count(chunks, 'chunk'),
    count(runs, 'run'),
    count(entries, 'journal entry', 'journal entries'),
  ]
  if (ok)
    output.print(
      `${output.paint('green', 'ok')}: ${file} is as it was written (${format}: ${parts.join(', ')}).`,
    )
  else if (problem) output.print(`${output.paint('red', 'altered')}: ${file}: ${plain(problem.reason)}`)
  for (const { by, fingerprint, valid, trusted, at } of signatures) {
    const standing = valid
      ? trusted
        ? 'valid, a key you gave'
        : 'valid, by a key that you did not give'
      : 'not valid'
    output.print(
      `  signed by ${plain(by ?? 'somebody')} at ${new Date(at).toISOString()} with ${fingerprint.slice(0, 16)}: ${standing}`,
    )
  }
  if (ok && signatures.length === 0) {
    output.print('  not signed: it shows damage and small changes, not a file that was rewritten as a whole.')
  }
  if (absent.length > 0) output.print(`  names ${count(absent.length, 'session')} that are not part of it.`)
}

async function verifyKept(name: string, options: Options, output: Output): Promise<number> {
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
