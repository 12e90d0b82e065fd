import { isAbsolute, resolve } from 'node:path'
import { matchesGlob } from './match.ts'
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
  const variable = variables && script.assignments.find(name => !maySet(name, variables))
  if (variable !== undefined) {
    return `the command sets the variable ${variable}; one that is called by a single small letter may be set`
  }
  if (variables && script.doubt !== undefined) return `the command cannot be checked: ${script.doubt}`
  const moved = rule.allow && (await programElsewhere(script, cwd, files))
  if (moved !== undefined) return `the command ${moved} is run from another folder than the workspace`
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

/** No shell and no program listens to a name of one small letter. One that they do listen to has to be named itself: no glob is enough. */
function maySet(name: string, variables: readonly string[]): boolean {
  if (/^[a-z]$/.test(name)) return true
  return variables.some(pattern => pattern === name || (!listened.test(name) && matchesGlob(pattern, name)))
}

/** What a shell, the loader, or a common program takes a path, a command or an option from; and what is not a name at all. */
const listened = new RegExp(
  `^(?:${[
    'PATH|IFS|ENV|HOME|PWD|OLDPWD|CDPATH|SHELL|SHELLOPTS|PS\\d|PROMPT_.*|TMOUT|MAIL.*|OPT(?:IND|ARG|ERR)|POSIX.*|.*IGNORE|HIST.*',
    'BASH.*|S?RANDOM|SECONDS|LINENO|EPOCH.*|E?UID|PPID|GROUPS|DIRSTACK|FUNCNAME|MAPFILE|REPLY|_|INPUTRC|HOSTFILE|TEXTDOMAIN.*|LANG.*|LC_.*|NLSPATH|LOCPATH|GCONV_PATH|TMPDIR|TERM.*|FUNCNEST|COMP_.*|ZDOTDIR',
    'LD_.*|DYLD_.*|MALLOC_.*|GLIBC_.*|.*EDITOR|VISUAL|.*PAGER|BROWSER|LESS.*|GIT_.*|SSH_.*|PYTHON.*|PERL.*|RUBY.*|LUA_.*|.*CLASSPATH',
    'NODE_OPTIONS|NODE_PATH|NODE_.*SCRIPT|npm_.*|NPM_.*|JAVA_.*|_JAVA_.*|.*_OPTIONS|MAKE.*|GREP_.*|TAR_.*|.*PROXY|.*proxy',
  ].join('|')})$|\\W|^$`,
)

/** The first command that is named by a relative path, if the line is run or goes elsewhere than where such a path starts. */
async function programElsewhere(
  { commands }: ShellScript,
  cwd: string,
  files: () => Promise<PathFiles>,
): Promise<string | undefined> {
  const relative = commands.find(({ name }) => name.includes('/') && !isAbsolute(name))
  if (relative === undefined) return undefined
  if (commands.some(moves)) return relative.name
  const { folder } = await files()
  return resolve(folder, cwd) === resolve(folder) ? undefined : relative.name
}

/** Commands that change the folder, their own or that of what they start. */
function moves({ name, args }: ShellCommand): boolean {
  if (/(^|\/)(cd|pushd|popd|chroot)$/.test(name)) return true
  if (/(^|\/)find$/.test(name)) return args.some(word => /^-(exec|ok)dir$/.test(word ?? ''))
  return (
    /(^|\/)(env|sudo)$/.test(name) &&
    args.some(word => /^(-[a-zA-Z]*[CDR]|--chdir|--chroot)/.test(word ?? ''))
  )
}

function describeCommand(match: CommandMatch): string {
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
