import { type Command, Option } from 'commander'
import { graphLanes } from '../../evidence/graph-lanes.ts'
import { sessionGraph } from '../../session/graph.ts'
import { examples, type StoreOption, withStore } from '../command.ts'
import { graphRows, relatives } from '../graph-rows.ts'
import { findSession } from '../names.ts'
import type { Output } from '../output.ts'
import { openToRead } from '../runtime.ts'

interface Options extends StoreOption {
  readonly format: 'lanes' | 'mermaid' | 'dot' | 'json'
  readonly json?: boolean
}

export function define(command: Command, output: Output): void {
  command
    .argument('[name]', 'a session or run: it, what it came from and what came of it; everything by default')
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
    ['rath graph last', 'around what the newest run made'],
    ['rath graph --format dot | dot -Tsvg > graph.svg', 'a picture'],
  ])
}

async function draw(name: string | undefined, options: Options, output: Output): Promise<void> {
  await using store = await openToRead(options)
  const rows = await graphRows(store)
  const centre = name === undefined ? undefined : await findSession(store, name)
  const graph = sessionGraph(centre === undefined ? rows : relatives(rows, centre))
  const format = options.json ? 'json' : options.format
  if (format === 'json') output.json(graph.toJSON())
  else if (format === 'dot') output.print(graph.toDot())
  else if (format === 'mermaid') output.print(graph.toMermaid())
  else for (const { text } of graphLanes(graph, { width: output.width() })) output.print(text)
}
