import { show } from '../../base/errors.ts'
import { type Problem, refuse } from '../../base/json.ts'
import { longestTimer } from '../../base/time.ts'
import type { ExecOptions } from '../spec.ts'

/** Refuses a command that cannot be run as it is written, with everything that is wrong with it. */
export function checkCommand(command: string | readonly string[], options: ExecOptions): void {
  const problems: Problem[] = []
  const need = (fine: boolean, path: string, message: string) => {
    if (!fine) problems.push({ path, message })
  }
  const words: readonly unknown[] = typeof command === 'string' ? [command] : command
  const isList = Array.isArray(words) && words.length > 0 && words.every(word => typeof word === 'string')
  need(isList && words[0] !== '', 'command', `must be a text or a list of them, not ${show(command)}`)
  if (isList) need(!words.some(hasZero), 'command', 'must not hold a zero byte')
  const { timeout, outputLimit, env = {} } = options
  need(
    timeout === undefined || (timeout > 0 && timeout <= longestTimer),
    'timeout',
    `must be milliseconds between 0 and ${longestTimer}, not ${show(timeout)}`,
  )
  need(
    outputLimit === undefined || (outputLimit >= 0 && Number.isSafeInteger(outputLimit)),
    'outputLimit',
    `must be a number of bytes, not ${show(outputLimit)}`,
  )
  for (const [name, value] of Object.entries(env)) {
    const isFine = typeof value === 'string' && !hasZero(value) && /^[^=\0]+$/.test(name)
    need(isFine, `env.${name}`, `must be a name and a text, not ${show(value)}`)
  }
  refuse('invalid-argument', 'The command cannot be run', problems)
}

function hasZero(text: unknown): boolean {
  return typeof text === 'string' && text.includes('\0')
}
