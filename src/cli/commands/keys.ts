import type { Command } from 'commander'
import { type Keys, keysFolder, listKeys, makeKeys } from '../../evidence/keys.ts'
import { examples, type JsonOption, withJson } from '../command.ts'
import type { Output } from '../output.ts'

interface Options extends JsonOption {
  readonly new?: string | true
}

export function define(command: Command, output: Output): void {
  command
    .option('--new [name]', 'make a pair; default by default')
    .action((options: Options) => keys(options, output))
  withJson(command)
  examples(command, [
    ['rath keys --new', 'make the key that rath export --sign uses'],
    ['rath keys', 'the keys you have, and the public part to hand out'],
  ])
}

async function keys(options: Options, output: Output): Promise<void> {
  const found = options.new
    ? [await makeKeys(options.new === true ? undefined : options.new)]
    : await listKeys()
  if (options.json) return output.json({ folder: keysFolder(), keys: found.map(publicPart) })
  if (found.length === 0) return output.tell(`No keys in ${keysFolder()}. Make one: rath keys --new`)
  for (const { name, fingerprint, publicKey } of found) {
    output.print(`${output.paint('bold', name)}  ${fingerprint}\n${publicKey.trim()}`)
  }
}

function publicPart({ name, fingerprint, publicKey }: Keys): Keys {
  return { name, fingerprint, publicKey }
}
