import { existsSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type Command, Option } from 'commander'
import { platformOf } from '../../base/platform.ts'
import { type DossierOptions, dossierOf } from '../../evidence/dossier/dossier-of.ts'
import { dossierHtml } from '../../evidence/dossier/html/page.ts'
import { dossierMarkdown } from '../../evidence/dossier/markdown.ts'
import { Workspaces } from '../../run/place/workspaces.ts'
import { SandboxRegistry } from '../../sandbox/registry.ts'
import { examples, type StoreOption, withStore } from '../command.ts'
import { findEither } from '../names.ts'
import type { Output } from '../output.ts'
import { whileWorking } from '../progress.ts'
import { openToRead } from '../runtime.ts'

interface Options extends StoreOption {
  readonly out?: string
  readonly json?: boolean
  readonly md?: boolean
}

export function define(command: Command, output: Output): void {
  command
    .argument('<name>', 'a run or session')
    .option('-o, --out <file>', 'write to this file; standard output by default')
    .option('--md', 'Markdown, for a review or a pull request; HTML by default')
    .addOption(new Option('--json', 'the same as data').conflicts('md'))
    .action((name: string, options: Options) => write(name, options, command.parent?.version() ?? '', output))
  withStore(command)
  examples(command, [
    ['rath dossier last -o run.html', 'what happened, in one page that needs nothing else'],
    ['rath dossier last --md > review.md', 'for a pull request'],
    ['rath dossier chat --json | jq .branches', 'for a program'],
  ])
}

async function write(name: string, options: Options, version: string, output: Output): Promise<void> {
  await using store = await openToRead(options)
  const found = await findEither(store, name)
  const subject = found.run ? found.run.id : found.session
  const dossier = await whileWorking(output, 'reading', async () =>
    dossierOf(store, subject, await surroundings(version)),
  )
  const text = options.json
    ? `${JSON.stringify(dossier, null, 2)}\n`
    : options.md
      ? dossierMarkdown(dossier)
      : dossierHtml(dossier)
  if (options.out === undefined) return output.raw(text)
  await writeFile(options.out, text)
  output.tell(`Written to ${options.out}.`)
}

/** What a dossier says of where it was made. */
export async function surroundings(version: string): Promise<DossierOptions> {
  const registry = new SandboxRegistry()
  const workspaces = new Workspaces().folder
  const isKept = existsSync(join(workspaces, 'objects'))
  return {
    environment: {
      openrath: version,
      node: process.version,
      platform: `${platformOf().name} ${process.arch}`,
    },
    sandboxes: registry.names.map(one => registry.get(one)),
    ...(isKept && { workspaces }),
  }
}
