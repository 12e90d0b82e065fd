import type {
  ArithmeticExpression,
  Command,
  ParsedScript,
  Redirection,
  SyntaxNode,
  Word,
  WordPart,
} from 'unbash'
import { builtinEffect, type ShellWord } from './builtins.ts'
import { outsideCommonShell, outsideCommonText } from './common-shell.ts'
import { unwrap } from './wrappers.ts'

/** One program that a command line would start, or a builtin that it would call. */
export interface ShellCommand {
  readonly name: string
  /** A word that only the shell can know (`$x`, `*`) is undefined. */
  readonly args: readonly (string | undefined)[]
}

export interface ShellScript {
  /** Every command: of pipelines, lists, subshells, substitutions, functions, and what wrappers such as `sudo` or `sh -c` start. */
  readonly commands: readonly ShellCommand[]
  /** Variables that it sets or unsets, by an assignment, a loop, an expansion or a builtin. */
  readonly assignments: readonly string[]
  /** Why the lists above may be incomplete in some shell; undefined when they are not. An allow-list does not let such a line pass. */
  readonly doubt: string | undefined
  /** Files that it redirects from or to; undefined where only the shell can know. */
  readonly redirects: readonly (string | undefined)[]
}

/** Thrown when nobody can say what a command line would run. A policy refuses it. */
export class ShellProblem extends Error {
  override readonly name = 'ShellProblem'
}

type Unbash = typeof import('unbash')

/** `sh -c "sh -c …"` nested deeper than this is no honest command. */
const maximumDepth = 8

/**
 * Characters of a line that is read at all. The parser looks ahead for the end of every quote and bracket, so its time grows with the
 * square of them, and this many take up to a second.
 */
export const longestLine = 10_000
const mostOldArithmetic = 50

/** Reads a bash or POSIX command line without running it. Throws `ShellProblem` for what it cannot be sure of. */
export async function readShell(source: string): Promise<ShellScript> {
  const reader = new Reader(await import('unbash'))
  try {
    reader.read(source, 0)
  } catch (error) {
    if (error instanceof RangeError) throw new ShellProblem('it is nested too deeply')
    throw error
  }
  reader.refuseHidden()
  return reader
}

class Reader implements ShellScript {
  readonly commands: ShellCommand[] = []
  readonly assignments: string[] = []
  readonly redirects: (string | undefined)[] = []
  doubt: string | undefined
  readonly #unbash: Unbash
  /** Text that looks like a substitution but is quoted, and something that evaluates text: together they can hide a command. */
  #hides = false
  #evaluates = false

  constructor(unbash: Unbash) {
    this.#unbash = unbash
  }

  read(source: string, depth: number): void {
    if (depth > maximumDepth) throw new ShellProblem('it is nested too deeply')
    if (source.length > longestLine) {
      throw new ShellProblem(
        `it has ${source.length} characters, and ${longestLine} are looked at; write a script to a file, or split it`,
      )
    }
    if (source.split('$[').length > mostOldArithmetic)
      throw new ShellProblem('it has too many $[; write $(( ))')
    if (source.includes('\0')) throw new ShellProblem('it holds a NUL character')
    this.doubt ??= outsideCommonText(source)
    this.#visit(this.#unbash.parse(source), depth, source)
  }

  refuseHidden(): void {
    if (this.#hides && this.#evaluates) {
      throw new ShellProblem('it quotes a command substitution where bash may evaluate text')
    }
  }

  /** `outer` is the text that the positions of a node count in. */
  #visit(node: SyntaxNode, depth: number, outer: string): void {
    const source = node.type === 'Script' ? (node.source ?? outer) : outer
    const difference = readTwoWays(node, source, this.#unbash)
    if (difference !== undefined) throw new ShellProblem(difference)
    const variable = variableSetBy(node)
    if (variable !== undefined) this.assignments.push(variable)
    this.doubt ??= outsideCommonShell(node, source)
    switch (node.type) {
      case 'Script':
        refuseErrors(node)
        break
      case 'Command':
        this.#command(node, depth)
        break
      case 'Assignment':
        this.#evaluates ||= node.index !== undefined
        break
      case 'Redirect':
        this.#redirect(node)
        break
      case 'CommandExpansion':
      case 'ProcessSubstitution':
        // Parsed when asked for; a script that is not there could not be parsed.
        if (node.script === undefined) throw new ShellProblem(`${node.text} cannot be parsed`)
        break
      case 'ParameterExpansion':
        this.#evaluates ||=
          node.prefix === '!' || node.index !== undefined || node.operation?.type === 'Transform'
        if (node.operation?.type === 'Unknown') throw new ShellProblem(`${node.text} cannot be parsed`)
        break
      case 'ArithmeticCommand':
        // To a shell without arithmetic commands it is a subshell in a subshell.
        this.read(node.body, depth + 1)
        this.#evaluates = true
        break
      case 'ArithmeticExpansion':
      case 'ArithmeticFor':
      case 'TestCommand':
        this.#evaluates = true
        break
      case 'Literal':
      case 'SingleQuoted':
      case 'AnsiCQuoted':
        this.#hides ||= looksLikeSubstitution(node.value)
        break
      case 'Word':
        if (node.parts === undefined) this.#hides ||= looksLikeSubstitution(node.value)
        break
    }
    this.#unbash.forEachChild(node, child => this.#visit(child, depth, source))
  }

  #command({ name, args }: Command, depth: number): void {
    if (name === undefined) return
    const words = [name, ...args].map(word => (word.type === 'Word' ? wordOf(word) : { text: word.text }))
    this.#run(words, depth)
  }

  /** Takes down one command, and whatever it starts in turn. */
  #run(words: readonly ShellWord[], depth: number): void {
    const name = words[0]?.text
    const rest = words.slice(1)
    const args = rest.map(({ text }) => text)
    if (name === undefined || name === '' || /^[~-]/.test(name)) {
      throw new ShellProblem('the name of a command is only known when it runs')
    }
    this.commands.push({ name, args })
    this.#evaluates ||= evaluators.has(name)
    const { sets, problem } = builtinEffect(name, rest)
    this.assignments.push(...sets)
    if (problem !== undefined) this.doubt ??= `${name}: ${problem}`
    if (/(^|\/)find$/.test(name)) this.redirects.push(...filesThatFindWrites(args))
    const inner = unwrap(name, args)
    if (inner === undefined) return
    if (inner.kind === 'unknown') throw new ShellProblem(`${name}: ${inner.why}`)
    if (inner.kind === 'script') {
      this.doubt ??= inner.doubt
      this.read(inner.source, depth + 1)
    } else {
      this.assignments.push(...inner.assignments)
      this.doubt ??= inner.doubt
      if (depth >= maximumDepth) throw new ShellProblem('it is nested too deeply')
      const started = inner.words.map(text => ({ text }))
      this.#run(started, depth + 1)
    }
  }

  #redirect(redirect: Extract<Redirection, { type: 'Redirect' }>): void {
    const target = redirect.target && staticText(redirect.target)
    const isDescriptor = redirect.operator === '>&' || redirect.operator === '<&'
    if (isDescriptor && target !== undefined && /^(\d+-?|-)$/.test(target)) return
    if (target !== '/dev/null') this.redirects.push(target?.startsWith('~') ? undefined : target)
  }
}

/** `find -fprintf build 'rm x'` writes a script as a redirection would. */
function filesThatFindWrites(args: readonly (string | undefined)[]): (string | undefined)[] {
  return args.flatMap((word, i) => (/^-(?:fprint0?|fprintf|fls)$/.test(word ?? '') ? [args[i + 1]] : []))
}

/** Builtins that take text as an arithmetic expression, a subscript or a prompt, in which bash runs substitutions. */
const evaluators = new Set(
  'test [ let declare typeset local export readonly read printf unset mapfile readarray wait set'.split(' '),
)

function refuseErrors(script: ParsedScript): void {
  const [error] = script.errors ?? []
  if (error) throw new ShellProblem(`it cannot be parsed (${error.message})`)
}

function looksLikeSubstitution(text: string): boolean {
  return text.includes('$(') || text.includes('`')
}

/** A word as far as it is known: quotes are gone, and what the shell would put in its place is not guessed. */
function wordOf(word: Word): ShellWord {
  const text = staticText(word)
  if (text !== undefined) return { text }
  const [part, more] = word.parts ?? []
  const only = part?.type === 'DoubleQuoted' && part.parts.length === 1 ? part.parts[0] : part
  const isNumber = !more && only?.type === 'SimpleExpansion' && /^\$[!?#$]$/.test(only.text)
  const isOne = word.parts?.every(
    piece => isStatic(piece) || (piece.type === 'DoubleQuoted' && !spreads(piece.text)),
  )
  return { text, isOne: isOne ?? false, isNumber }
}

/** `"$@"` is as many words as there are. */
function spreads(text: string): boolean {
  return /[@*!]/.test(text)
}

/** The text of a word that the shell leaves as it is once quotes are gone; undefined for any other. */
function staticText(word: Word): string | undefined {
  // The shell puts a folder in place of a tilde.
  if (/(?:^|[=:])~/.test(word.text)) return undefined
  return word.parts === undefined || word.parts.every(isStatic) ? word.value : undefined
}

function isStatic(part: WordPart): boolean {
  switch (part.type) {
    case 'Literal':
    case 'SingleQuoted':
    case 'AnsiCQuoted':
      return true
    case 'DoubleQuoted':
    case 'LocaleString':
      return part.parts.every(child => child.type === 'Literal')
    default:
      return false
  }
}

/** The variable that a piece of a command line sets, in whatever way; undefined when it sets none. */
function variableSetBy(node: SyntaxNode): string | undefined {
  switch (node.type) {
    case 'Assignment':
    case 'FileDescriptorVariable':
      return node.name
    case 'For':
    case 'Select':
      return node.name.value
    case 'Coproc':
      return node.name?.value
    case 'ParameterExpansion':
      return /=$/.test(node.operation?.operator ?? '') ? node.parameter : undefined
    case 'ArithmeticBinary':
      return /^(=|[^=!<>]=|<<=|>>=)$/.test(node.operator) ? nameOf(node.left) : undefined
    case 'ArithmeticUnary':
      return /^(\+\+|--)$/.test(node.operator) ? nameOf(node.operand) : undefined
    default:
      return undefined
  }
}

/** `list` of `list[3]`. What is no name cannot be set either, or only the run knows it. */
function nameOf(expression: ArithmeticExpression): string {
  return 'value' in expression ? (expression.value.split('[', 1)[0] as string) : 'in an expression'
}

/**
 * Why a piece of a command line is other commands to a shell that knows less than bash, such as the /bin/sh of Debian; undefined when it is
 * not. The line is read as bash, and the shell that runs it may be either.
 */
function readTwoWays(
  node: SyntaxNode,
  source: string,
  { parse }: typeof import('unbash'),
): string | undefined {
  switch (node.type) {
    case 'Command':
      return hasWordsBehindBoth(node) ? '&> in front of a word ends the command in some shells' : undefined
    case 'TestCommand':
      return isPlain(`test ${source.slice(node.pos + 2, node.end)}`, parse)
        ? undefined
        : 'what is between [[ and ]] are several commands to some shells; use [ ]'
    case 'AnsiCQuoted':
      return node.text.slice(2, -1).includes("'") ? `${node.text} ends elsewhere in some shells` : undefined
    case 'HereDocDelimiter':
      return /\$['"]/.test(node.text)
        ? `a here-document ends elsewhere than ${node.text} in some shells`
        : undefined
    case 'ParameterExpansion':
      // A quote in it quotes or does not, by the shell and by what is around it.
      return /'.*[$`"}\\]/s.test(node.text.slice(0, -1))
        ? `the quotes in ${node.text} are read differently by shells`
        : undefined
    default:
      return undefined
  }
}

/** `ls &> file rm x`: to a shell without `&>`, `ls &` and then `> file rm x`. */
function hasWordsBehindBoth({ suffix }: Command): boolean {
  const both = suffix.findIndex(part => part.type === 'Redirect' && part.operator.startsWith('&>'))
  return both >= 0 && suffix.slice(both).some(({ type }) => type === 'Word' || type === 'Assignment')
}

/** Whether a text is one command that redirects nothing. */
function isPlain(text: string, parse: typeof import('unbash')['parse']): boolean {
  const { commands, errors } = parse(text)
  const command = commands[0]?.command
  return (
    !errors?.length && commands.length === 1 && command?.type === 'Command' && command.redirects.length === 0
  )
}
