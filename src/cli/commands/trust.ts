import type { Command } from 'commander'
import { decisionsOf } from '../../model/config.ts'
import { type ConfigAnswer, projectConfig } from '../../model/project-config.ts'
import { processSurroundings } from '../../model/surroundings.ts'
import { examples, type JsonOption, withJson } from '../command.ts'
import { UsageError } from '../errors.ts'
import type { Output } from '../output.ts'
import { answerWith, askFor, isAtTerminal, showConfig } from '../trust.ts'

interface Options extends JsonOption {
  readonly yes?: boolean
  readonly no?: boolean
  readonly forget?: boolean
}

export function define(command: Command, output: Output): void {
  command
    .option('-y, --yes', 'agree without being asked')
    .option('-n, --no', 'do not use it; your own config is used instead')
    .option('--forget', 'take back what was answered')
    .action((options: Options) => decide(options, output))
  withJson(command)
  examples(command, [
    ['rath trust', 'what the config of this folder decides; asks whether it may'],
    ['rath trust --yes', 'agrees, for a script'],
    ['rath trust --json', 'only shows it, and what was answered'],
  ])
}

async function decide(options: Options, output: Output): Promise<void> {
  const chosen = [options.yes, options.no, options.forget].filter(Boolean)
  if (chosen.length > 1) throw new UsageError('--yes, --no and --forget are three answers; give one of them.')
  const project = projectConfig(processSurroundings())
  if (project === undefined) {
    if (options.json) return output.json({ path: null })
    return output.print('There is no config in this folder that you would have to agree to.')
  }
  const answer: ConfigAnswer | undefined = options.yes ? 'agreed' : options.no ? 'refused' : undefined
  if (options.json) {
    if (chosen.length > 0) answerWith(project, answer, output)
    const stands = chosen.length > 0 ? answer : project.answer
    const { path, digest } = project
    const decides = decisionsOf(project, processSurroundings())
    return output.json({ path, digest, answer: stands ?? null, decides })
  }
  if (chosen.length > 0) {
    if (answer === 'agreed') showConfig(project, output)
    return answerWith(project, answer, output)
  }
  if (isAtTerminal(output)) {
    const said = await askFor(project, output)
    if (said !== undefined) answerWith(project, said, output)
    return
  }
  showConfig(project, output)
  output.tell(
    project.answer === undefined
      ? 'Nobody has agreed to it. Without a terminal, say rath trust --yes or rath trust --no.'
      : `It was ${project.answer}.`,
  )
}
