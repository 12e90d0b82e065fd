import type { Command } from 'commander'
import { Chat } from '../chat/chat.ts'
import { examples, type StoreOption, withStore } from '../command.ts'
import type { Output } from '../output.ts'
import { openRuntime } from '../run-runtime.ts'
import { loadModel } from '../workflow-file.ts'

interface Options extends StoreOption {
  readonly model?: string
  readonly new?: boolean
  readonly yes?: boolean
  readonly prompt?: string
}

export function define(command: Command, output: Output): void {
  command
    .option(
      '-m, --model <model>',
      'openai/gpt-5.5, or a file that exports a model; what the environment names by default',
    )
    .option('--new', 'begin anew; what was said before stays in the store')
    .option('-y, --yes', 'run every tool without asking')
    .option('--prompt <text>', 'instructions of your own')
    .action(async (options: Options) => {
      await using runtime = openRuntime(options)
      const model = options.model === undefined ? undefined : await loadModel(options.model)
      const chat = new Chat({
        runtime,
        output,
        folder: process.cwd(),
        isNew: options.new ?? false,
        asks: !options.yes,
        ...(model !== undefined && { model }),
        ...(options.prompt !== undefined && { prompt: options.prompt }),
      })
      await chat.run(process.stdin)
    })
  withStore(command)
  examples(command, [
    ['rath chat', 'an agent with tools in this folder; goes on where you left it'],
    ['rath chat -m anthropic/claude-opus-5-5', 'with another model'],
    ['rath chat --new', 'a new conversation'],
  ])
}
