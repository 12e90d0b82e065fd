import { setTimeout as pause } from 'node:timers/promises'
import { RathError } from '../base/errors.ts'
import { decisionsOf } from '../model/config.ts'
import { type ConfigAnswer, keepAnswer, type ProjectConfig, projectConfig } from '../model/project-config.ts'
import { processSurroundings } from '../model/surroundings.ts'
import { UsageError } from './errors.ts'
import { Lines } from './lines.ts'
import type { Output } from './output.ts'
import { indent } from './text.ts'

/**
 * Asks once whether the config that lies in this folder may be used. Without a terminal nobody is asked; whatever needs the config then
 * fails and says how to agree.
 */
export async function askAboutConfig(output: Output): Promise<void> {
  const project = projectConfig(processSurroundings())
  if (project === undefined || project.answer !== undefined || !isAtTerminal(output)) return
  try {
    const answer = await askFor(project, output)
    if (answer !== undefined) answerWith(project, answer, output)
  } catch (error) {
    // One that cannot be used is in the way only of what needs it.
    if (!(error instanceof RathError)) throw error
    output.tell(`${error.message}\nIt is not used; rath trust --no uses your own config instead.`)
  }
}

export function isAtTerminal(output: Output): boolean {
  return Boolean(process.stdin.isTTY && output.stdout.isTTY)
}

export function showConfig(project: ProjectConfig, output: Output): void {
  const decisions = decisionsOf(project, processSurroundings())
  output.print(`${project.path} decides:`)
  output.print(indent(decisions.length > 0 ? decisions.join('\n') : 'nothing that is used'))
}

export function answerWith(project: ProjectConfig, answer: ConfigAnswer | undefined, output: Output): void {
  keepAnswer(project, answer, processSurroundings())
  const said = {
    agreed:
      'It is used from now on. When it changes you are asked again; rath trust --forget takes this back.',
    refused: 'It is not used; your own config is. rath trust --yes changes that.',
    forgotten: 'What was answered is forgotten.',
  }
  output.tell(said[answer ?? 'forgotten'])
}

/** The answer of whoever sits at the terminal; undefined for neither yes nor no. */
export async function askFor(project: ProjectConfig, output: Output): Promise<ConfigAnswer | undefined> {
  output.print('The config in this folder came with it, unless you wrote it yourself.')
  showConfig(project, output)
  const said = await askYes('Use it? [y]es, [n]o, Enter to decide later: ', output)
  return said && (said === 'yes' ? 'agreed' : 'refused')
}

/** Asks whoever sits at the terminal; undefined for neither yes nor no. */
export async function askYes(question: string, output: Output): Promise<'yes' | 'no' | undefined> {
  const abort = new AbortController()
  using lines = new Lines({ input: process.stdin, output: output.stdout, onInterrupt: () => abort.abort() })
  // What was typed before the question was there lies in the terminal's buffer and does not answer it.
  await pause(50)
  const { signal } = abort
  const said = await lines.read(question, { signal, fresh: true })
  if (signal.aborted) throw new UsageError('cancelled with Ctrl-C; nothing was decided.')
  const word = said?.trim().toLowerCase()
  if (word === 'y' || word === 'yes') return 'yes'
  return word === 'n' || word === 'no' ? 'no' : undefined
}
