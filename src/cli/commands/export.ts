import { createWriteStream } from 'node:fs'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { type Command, Option } from 'commander'
import { type BundleOptions, writeBundle } from '../../evidence/bundle/write.ts'
import { readKeys } from '../../evidence/keys.ts'
import type { SigningKey } from '../../evidence/signature.ts'
import type { Store } from '../../store/spec.ts'
import { whoami } from '../ask.ts'
import { examples, type StoreOption, withStore } from '../command.ts'
import { findEither } from '../names.ts'
import type { Output } from '../output.ts'
import { openToRead } from '../runtime.ts'

interface Options extends StoreOption {
  readonly out?: string
  readonly with: 'graph' | 'ancestors' | 'alone'
  readonly sign?: string | true
}

export function define(command: Command, output: Output): void {
  command
    .argument('[names...]', 'sessions and runs; everything in the store by default')
    .option('-o, --out <file>', 'write to this file; standard output by default')
    .addOption(
      new Option(
        '--with <what>',
        'what comes with a session: all it is connected with, what it came from, nothing',
      )
        .choices(['graph', 'ancestors', 'alone'])
        .default('graph'),
    )
    .option('--sign [key]', 'sign it with a key made by rath keys')
    .action((names: string[], options: Options) => write(names, options, output))
  withStore(command)
  examples(command, [
    ['rath export last -o run.jsonl', 'the newest run with all its branches, in one file'],
    ['rath export last --sign -o run.jsonl', 'the same, signed'],
    ['rath export > everything.jsonl', 'the whole store'],
  ])
}

async function write(names: readonly string[], options: Options, output: Output): Promise<void> {
  await using store = await openToRead(options)
  const bundle: BundleOptions = {
    ...(names.length > 0 && (await named(names, store))),
    with: options.with,
    ...(options.sign && { sign: await signingKey(options.sign) }),
  }
  const lines = Readable.from(writeBundle(store, bundle))
  if (options.out === undefined) {
    for await (const line of lines) output.stdout.write(line)
  } else {
    await pipeline(lines, createWriteStream(options.out))
    output.tell(`Written to ${options.out}. Check it with: rath verify ${options.out}`)
  }
}

async function signingKey(name: string | true): Promise<SigningKey> {
  const { privateKey } = await readKeys(name === true ? undefined : name)
  return { privateKey, by: whoami() }
}

async function named(
  names: readonly string[],
  store: Store,
): Promise<{ sessions?: string[]; runs?: string[] }> {
  const sessions: string[] = []
  const runs: string[] = []
  for (const name of names) {
    const found = await findEither(store, name)
    if (found.run) runs.push(found.run.id)
    else sessions.push(found.session)
  }
  return { ...(sessions.length > 0 && { sessions }), ...(runs.length > 0 && { runs }) }
}
