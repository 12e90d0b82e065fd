import type { Command } from 'commander'
import { RathError, show } from '../../base/errors.ts'
import type { Memory, MemoryFilter, MemoryStore, MemoryTree } from '../../memory/spec.ts'
import { Memories } from '../../run/memory/memories.ts'
import { examples, type JsonOption, wholeNumber, withJson } from '../command.ts'
import { UsageError } from '../errors.ts'
import type { Output } from '../output.ts'
import { ago, count, oneLine, plain } from '../text.ts'

interface Options extends JsonOption {
  readonly memory: string
  readonly limit: number
  readonly scope?: string
  readonly category?: string
}

export function define(command: Command, output: Output): void {
  const part = (usage: string, summary: string) =>
    withJson(command.command(usage).description(summary)).option(
      '--memory <name>',
      'a backend or preset',
      'local',
    )
  const filtered = (one: Command) =>
    one
      .option('-n, --limit <count>', 'entries to show', wholeNumber(), 20)
      .option('--scope <scope>', 'only of user/ada, agent/researcher, …')
      .option('--category <category>', 'only facts, preferences, decisions, …')
  filtered(part('list', 'Entries, newest first.')).action((options: Options) =>
    use(options, async store => {
      const { entries } = await store.list({ ...filterOf(options), limit: options.limit })
      if (options.json) return output.json({ entries })
      for (const entry of entries) output.print(line(entry))
      if (entries.length === 0) output.tell('Nothing is remembered.')
    }),
  )
  filtered(part('find <words...>', 'What fits the words, best first.')).action(
    (words: string[], options: Options) =>
      use(options, async store => {
        const found = await store.find(words.join(' '), {
          ...filterOf(options),
          limit: Math.min(100, options.limit),
        })
        if (options.json) return output.json(found)
        for (const hit of found.hits) output.print(`${hit.score.toFixed(2)} ${line(hit)}`)
        if (found.hits.length === 0) output.tell('Nothing fits.')
        if (found.fellBack) output.tell(`Found by words only: ${found.fellBack}`)
      }),
  )
  part('read <id>', 'One entry, with all it says.').action((id: string, options: Options) =>
    use(options, async store => {
      const entry = await store.read(id)
      if (entry === null) throw missing(id, store)
      if (options.json) return output.json(entry)
      output.print(`${entry.uri}\n${plain(entry.text)}`)
    }),
  )
  part('forget <ids...>', 'End entries: they are found and read no more.').action(
    (ids: string[], options: Options) =>
      use(options, async store => {
        for (const id of ids) if ((await store.read(id)) === null) throw missing(id, store)
        let forgotten = 0
        for (const id of ids) forgotten += await store.forget(id)
        if (options.json) return output.json({ forgotten })
        output.print(`${count(forgotten, 'entry', 'entries')} forgotten.`)
      }),
  )
  part('tree [uri]', 'Scopes and categories, with how many entries each holds.').action(
    (uri: string | undefined, options: Options) =>
      use(options, async store => {
        const tree = await store.tree(uri)
        if (options.json) output.json(tree)
        else output.print(branches(tree).join('\n'))
      }),
  )
  command.action(() => {
    throw new UsageError(
      'say what to do: rath memory list, find, read, forget or tree. See rath memory --help',
    )
  })
  examples(command, [
    ['rath memory list', 'what agents remember in this folder'],
    ['rath memory find "compact summaries"', 'what fits these words'],
    ['rath memory forget 0198c2d1…', 'end an entry'],
    ['rath memory tree --memory postgres', 'another backend'],
  ])
}

async function use(options: Options, work: (store: MemoryStore) => Promise<void>): Promise<void> {
  const memories = new Memories()
  try {
    await work(await memories.open(options.memory, options))
  } finally {
    await memories.close()
  }
}

function filterOf({ scope, category }: Options): MemoryFilter {
  return { ...(scope && { scope }), ...(category && { category }) }
}

function line({ id, scope, category, at, text }: Memory): string {
  return `${id}  ${oneLine(`${scope}/${category}`).padEnd(20)} ${ago(at).padEnd(8)} ${oneLine(text, 100)}`
}

function missing(id: string, { name }: MemoryStore): RathError {
  return new RathError('memory-missing', `There is no entry ${show(id)} in ${name}; see rath memory list.`)
}

function branches({ uri, entries, children }: MemoryTree, depth = 0): string[] {
  const own = `${'  '.repeat(depth)}${uri}  ${count(entries, 'entry', 'entries')}`
  return [own, ...children.flatMap(child => branches(child, depth + 1))]
}
