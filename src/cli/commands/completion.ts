import { Argument, type Command, type Option } from 'commander'
import { examples } from '../command.ts'
import type { Output } from '../output.ts'

export function define(command: Command, output: Output, whole: () => Promise<Command>): void {
  command
    .addArgument(new Argument('<shell>').choices(['bash', 'zsh', 'fish']))
    .action(async (shell: 'bash' | 'zsh' | 'fish') => {
      output.print({ bash: bashScript, zsh: zshScript, fish: fishScript }[shell](await whole()))
    })
  examples(command, [
    ['rath completion bash > ~/.local/share/bash-completion/completions/rath', 'for bash'],
    ['rath completion zsh > ~/.zfunc/_rath', 'for zsh, with ~/.zfunc in fpath'],
    ['rath completion fish > ~/.config/fish/completions/rath.fish', 'for fish'],
  ])
}

interface Described {
  readonly name: string
  readonly summary: string
  readonly options: readonly Option[]
  readonly arguments: readonly Argument[]
  /** What stands in the place of its first argument. */
  readonly words: string | undefined
}

/** Words that complete an argument: its choices, the ids in the store, or files. */
function wordsFor(
  { argChoices }: { argChoices?: readonly string[] | undefined },
  name: string,
): string | undefined {
  if (argChoices) return argChoices.join(' ')
  if (name === 'run') return '$(_rath_ids runs)'
  return ['name', 'a', 'b', 'session'].includes(name) ? '$(_rath_ids sessions)' : undefined
}

function described(program: Command): Described[] {
  return program.commands.map(command => {
    const [first] = command.registeredArguments
    const parts = command.commands.map(part => part.name()).join(' ')
    return {
      name: command.name(),
      summary: command.summary(),
      options: command.options,
      arguments: command.registeredArguments,
      words: parts || (first && wordsFor(first, first.name())),
    }
  })
}

/** Shells run what stands in words that they complete, and ids come with files of others: only those are offered in which nothing can be run. */
const safeIds = `_rath_ids() { rath ls "$1" -q 2>/dev/null | grep -xE '[A-Za-z0-9._-]+'; }`

const flagsOf = ({ short, long }: Option) => [short, long].filter(flag => flag !== undefined)

/** Options complete behind a dash, choices and ids where they fit, files everywhere else. */
function bashScript(program: Command): string {
  const all = described(program)
  const cases = all.map(command => {
    const flags = command.options.flatMap(flagsOf).join(' ')
    const { words } = command
    const choices = command.options
      .filter(option => option.argChoices)
      .map(option => {
        const list = (option.argChoices ?? []).join(' ')
        return `      case "$prev" in ${flagsOf(option).join('|')}) COMPREPLY=($(compgen -W "${list}" -- "$word")); return;; esac\n`
      })
    return (
      `    ${command.name})\n${choices.join('')}` +
      `      if [[ $word == -* ]]; then COMPREPLY=($(compgen -W "${flags}" -- "$word")); return; fi\n` +
      (words ? `      COMPREPLY=($(compgen -W "${words}" -- "$word"))\n` : '') +
      '      ;;'
    )
  })
  return [
    safeIds,
    '_rath() {',
    `  local word=\${COMP_WORDS[COMP_CWORD]} prev=\${COMP_WORDS[COMP_CWORD-1]}`,
    '  COMPREPLY=()',
    '  if [[ $COMP_CWORD -eq 1 ]]; then',
    `    COMPREPLY=($(compgen -W "${all.map(({ name }) => name).join(' ')} help --help --version" -- "$word"))`,
    '    return',
    '  fi',
    `  case \${COMP_WORDS[1]} in`,
    `    help) COMPREPLY=($(compgen -W "${all.map(({ name }) => name).join(' ')}" -- "$word"));;`,
    ...cases,
    '  esac',
    '}',
    'complete -o default -F _rath rath openrath',
  ].join('\n')
}

function zshScript(program: Command): string {
  const all = described(program)
  const cases = all.map(command => {
    const options = command.options.map(option => {
      const value = option.required
        ? `:${option.name()}:${option.argChoices ? `(${option.argChoices.join(' ')})` : '_files'}`
        : ''
      const text = `[${quoted(option.description)}]${value}`
      const flags = flagsOf(option)
      return flags.length === 1 ? `'${flags[0]}${text}'` : `{${flags.join(',')}}'${text}'`
    })
    const places = command.arguments.map(argument => {
      const words = wordsFor(argument, argument.name())
      const list = argument.argChoices
        ? `(${argument.argChoices.join(' ')})`
        : words
          ? `(${words})`
          : '_files'
      const quote = words && !argument.argChoices ? '"' : "'"
      return `${quote}${argument.variadic ? '*' : ''}:${argument.name()}:${list}${quote}`
    })
    if (places.length === 0 && command.words) places.push(`':command:(${command.words})'`)
    return `    ${command.name}) _arguments ${[...options, ...places].join(' ')} ;;`
  })
  return [
    '#compdef rath openrath',
    safeIds,
    'local -a commands',
    `commands=(${all.map(({ name, summary }) => `'${name}:${quoted(summary)}'`).join(' ')})`,
    'if (( CURRENT == 2 )); then',
    "  _describe 'command' commands",
    'else',
    '  local name=$words[2]',
    '  shift words; (( CURRENT-- ))',
    '  case $name in',
    ...cases,
    '  esac',
    'fi',
  ].join('\n')
}

function fishScript(program: Command): string {
  const all = described(program)
  const lines = all.flatMap(command => {
    const within = `-n '__fish_seen_subcommand_from ${command.name}'`
    const options = command.options.map(option => {
      const short = option.short ? ` -s ${option.short.slice(1)}` : ''
      const value = option.required ? ' -r' : ''
      const choices = option.argChoices ? ` -x -a '${option.argChoices.join(' ')}'` : value
      return `complete -c rath ${within}${short} -l ${option.long?.slice(2)}${choices} -d '${quoted(option.description)}'`
    })
    const words = command.words?.replace(/^\$(?=\()/, '')
    const place = words ? [`complete -c rath ${within} -f -a '${words}'`] : []
    return [
      `complete -c rath -n __fish_use_subcommand -f -a ${command.name} -d '${quoted(command.summary)}'`,
      ...options,
      ...place,
    ]
  })
  // This shell takes the words as they are.
  const ids = 'function _rath_ids; rath ls $argv -q 2>/dev/null; end'
  return [ids, ...lines, 'complete -c openrath -w rath'].join('\n')
}

/** Inside single quotes, where brackets and colons mean something in zsh. */
function quoted(text: string): string {
  return text
    .replaceAll("'", '’')
    .replace(/[[\]:]/g, match => ({ '[': '(', ']': ')', ':': ',' })[match] as string)
}
