import { type Command, Option } from 'commander'
import { graphLanes } from '../../evidence/graph-lanes.ts'
import { graphOf } from '../../run/graph/graph.ts'
import type { Store } from '../../store/spec.ts'
import { examples, type StoreOption, withStore } from '../command.ts'
import { findEither } from '../names.ts'
import type { Output } from '../output.ts'
import { openToRead } from '../runtime.ts'

interface Options extends StoreOption {
  readonly format: 'lanes' | 'mermaid' | 'dot' | 'json'
  readonly json?: boolean
}

export function define(command: Command, output: Output): void {
  command
    .argument(
      '[name]',
      'a run: every session of it; a session: it, what it came from and what came of it; everything by default',
    )
    .addOption(
      new Option('--format <format>', 'how to draw it')
        .choices(['lanes', 'mermaid', 'dot', 'json'])
        .default('lanes'),
    )
    .option('--json', 'the same as --format json')
    .action((name: string | undefined, options: Options) => draw(name, options, output))
  withStore(command)
  examples(command, [
    ['rath graph', 'every session of the store, as lanes'],
    ['rath graph last', 'every session of the newest run'],
    ['rath graph --format dot | dot -Tsvg > graph.svg', 'a picture'],
  ])
}

async function draw(name: string | undefined, options: Options, output: Output): Promise<void> {
  await using store = await openToRead(options)
  const { graph, isCut } = await graphOf(store, await nameIn(store, name))
  if (isCut) output.tell(`There are more sessions than these ${graph.nodes.length}.`)
  const format = options.json ? 'json' : options.format
  if (format === 'json') output.json(graph.toJSON())
  else if (format === 'dot') output.print(graph.toDot())
  else if (format === 'mermaid') output.print(graph.toMermaid())
  else for (const { text } of graphLanes(graph, { width: output.width() })) output.print(text)
}

async function nameIn(store: Store, name: string | undefined): Promise<string> {
  if (name === undefined) return 'all'
  const found = await findEither(store, name)
  return found.run ? found.run.id : found.session
}
