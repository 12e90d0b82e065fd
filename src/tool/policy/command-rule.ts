import { isAbsolute } from 'node:path'
import { matchesAny, matchesGlob } from './match.ts'
import { isInside, type PathFiles } from './path-root.ts'
import type { CommandMatch, CommandRule } from './rules.ts'
import { readShell, type ShellCommand, ShellProblem, type ShellScript } from './shell.ts'

/** Why a command line is denied; undefined when it is not. */
export async function commandRefusal(
  line: string,
  cwd: string,
  rule: CommandRule,
  files: () => Promise<PathFiles>,
): Promise<string | undefined> {
  let script: ShellScript
  try {
    script = await readShell(line)
  } catch (error) {
    if (error instanceof ShellProblem) return `the command cannot be checked: ${error.message}`
    throw error
  }
  for (const command of script.commands) {
    const denied = rule.deny?.find(match => fits(match, command, 'deny'))
    if (denied !== undefined) return `the command ${command.name} is denied (${describeCommand(denied)})`
    if (rule.allow && !rule.allow.some(match => fits(match, command, 'allow'))) {
      return `the command ${command.name} is not among those allowed (${rule.allow.map(describeCommand).join(', ')})`
    }
  }
  const variables = rule.variables ?? (rule.allow ? [] : undefined)
  const variable =
    variables && script.assignments.find(name => !ofNobody.test(name) && !matchesAny(variables, name))
  if (variable !== undefined) {
    return `the command sets the variable ${variable}; one that is called by a single small letter may be set`
  }
  const roots = rule.redirects ?? (rule.allow ? [] : undefined)
  for (const target of roots ? script.redirects : []) {
    if (target === undefined) return 'the command redirects to a file that is only known when it runs'
    if (!isAbsolute(target) && script.commands.some(moves)) {
      return `the command redirects to ${target} from a folder that is only known when it runs`
    }
    if (!(await isInside(target, cwd, roots as readonly string[], await files()))) {
      return `the command redirects to ${target}`
    }
  }
  return undefined
}

/** No shell and no program listens to such a name: `for f in *` changes nothing for others. */
const ofNobody = /^[a-z]$/

/** Commands that change the folder, their own or that of what they start. */
function moves({ name, args }: ShellCommand): boolean {
  if (/(^|\/)(cd|pushd|popd|chroot)$/.test(name)) return true
  if (/(^|\/)find$/.test(name)) return args.some(word => /^-(exec|ok)dir$/.test(word ?? ''))
  return (
    /(^|\/)(env|sudo)$/.test(name) &&
    args.some(word => /^(-[a-zA-Z]*[CDR]|--chdir|--chroot)/.test(word ?? ''))
  )
}

export function describeCommand(match: CommandMatch): string {
  return typeof match === 'function' ? `passes ${match.name || 'a function'}` : match
}

/**
 * What cannot be known counts against the command on either side: a word that only the shell knows fits every word of a `deny`
 * and none of an `allow`, and `./ls` is `ls` to a `deny` and not to an `allow`.
 */
function fits(match: CommandMatch, command: ShellCommand, side: 'allow' | 'deny'): boolean {
  if (typeof match === 'function') return match(command) === true
  const words = match.trim().split(/\s+/)
  return words.every((word, i) => {
    if (i > 0) {
      const text = command.args[i - 1]
      return text === undefined ? side === 'deny' && i <= command.args.length : matchesGlob(word, text)
    }
    if (
      matchesGlob(word, command.name) &&
      (side === 'deny' || word.includes('/') === command.name.includes('/'))
    )
      return true
    return side === 'deny' && matchesGlob(word, command.name.slice(command.name.lastIndexOf('/') + 1))
  })
}
