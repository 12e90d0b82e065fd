import type { Command } from 'commander'
import { Chat } from '../chat/chat.ts'
import { choosePlace, type PlaceOptions } from '../chat/place.ts'
import { examples, type StoreOption, withStore } from '../command.ts'
import type { Output } from '../output.ts'
import { openRuntime } from '../run-runtime.ts'
import { askAboutConfig } from '../trust.ts'
import { loadModel } from '../workflow-file.ts'

interface Options extends StoreOption, PlaceOptions {
  readonly model?: string
  readonly new?: boolean
  readonly yes?: boolean
  readonly prompt?: string
  readonly acceptAltered?: boolean
}

export function define(command: Command, output: Output): void {
  command
    .option(
      '-m, --model <model>',
      'openai/gpt-5.5, or a file that exports a model; what the environment names by default',
    )
    .option('--isolated', 'commands see this folder and no network; the default where that works')
    .option('--local', 'commands run on this machine as you')
    .option('--allow <host>', 'a host that isolated commands may reach; may be given again', together)
    .option('--new', 'begin anew; what was said before stays in the store')
    .option('-y, --yes', 'run every tool without asking')
    .option('--prompt <text>', 'instructions of your own')
    .option('--accept-altered', 'go ahead with a session that is not as it was recorded; the record says so')
    .action(async (options: Options) => {
      await askAboutConfig(output)
      await using runtime = openRuntime(options)
      const model = options.model === undefined ? undefined : await loadModel(options.model)
      const folder = process.cwd()
      const place = await choosePlace(runtime.places.backends.get('isolated'), folder, options)
      const chat = new Chat({
        runtime,
        output,
        folder,
        place,
        isNew: options.new ?? false,
        asks: !options.yes,
        acceptsAltered: options.acceptAltered ?? false,
        ...(model !== undefined && { model }),
        ...(options.prompt !== undefined && { prompt: options.prompt }),
      })
      await chat.run(process.stdin)
    })
  withStore(command)
  examples(command, [
    ['rath chat', 'an agent with tools in this folder; goes on where you left it'],
    ['rath chat -m anthropic/claude-opus-5-5', 'with another model'],
    ['rath chat --allow registry.npmjs.org', 'isolated, and npm install works'],
    ['rath chat --local', 'commands run on this machine as you'],
    ['rath chat --new', 'a new conversation'],
  ])
}

function together(host: string, before: readonly string[] = []): readonly string[] {
  return [...before, host]
}
