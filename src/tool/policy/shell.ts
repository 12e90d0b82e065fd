import type { Command, ParsedScript, Redirection, SyntaxNode, Word, WordPart } from 'unbash'
import { readTwoWays } from './dialects.ts'
import { variableSetBy } from './variables.ts'
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
  /** Variables that it sets. */
  readonly assignments: readonly string[]
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

/** Reads a bash or POSIX command line without running it. Throws `ShellProblem` for what it cannot be sure of. */
export async function readShell(source: string): Promise<ShellScript> {
  const reader = new Reader(await import('unbash'))
  reader.read(source, 0)
  reader.refuseHidden()
  return reader
}

class Reader implements ShellScript {
  readonly commands: ShellCommand[] = []
  readonly assignments: string[] = []
  readonly redirects: (string | undefined)[] = []
  readonly #unbash: Unbash
  /** Text that looks like a substitution but is quoted, and something that evaluates text: together they can hide a command. */
  #hides = false
  #evaluates = false

  constructor(unbash: Unbash) {
    this.#unbash = unbash
  }

  read(source: string, depth: number): void {
    if (depth > maximumDepth) throw new ShellProblem('it is nested too deeply')
    if (source.includes('\0')) throw new ShellProblem('it holds a NUL character')
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
    const words = [name, ...args].map(word => (word.type === 'Word' ? staticText(word) : word.text))
    this.#run(words, depth)
  }

  /** Takes down one command, and whatever it starts in turn. */
  #run(words: readonly (string | undefined)[], depth: number): void {
    const [name, ...args] = words
    if (name === undefined || name === '' || /^[~-]/.test(name)) {
      throw new ShellProblem('the name of a command is only known when it runs')
    }
    this.commands.push({ name, args })
    this.#evaluates ||= evaluators.has(name)
    const inner = unwrap(name, args)
    if (inner === undefined) return
    if (inner.kind === 'unknown') throw new ShellProblem(`${name}: ${inner.why}`)
    if (inner.kind === 'script') this.read(inner.source, depth + 1)
    else {
      this.assignments.push(...inner.assignments)
      this.#run(inner.words, depth)
    }
  }

  #redirect(redirect: Extract<Redirection, { type: 'Redirect' }>): void {
    const target = redirect.target && staticText(redirect.target)
    const isDescriptor = redirect.operator === '>&' || redirect.operator === '<&'
    if (isDescriptor && target !== undefined && /^(\d+-?|-)$/.test(target)) return
    if (target !== '/dev/null') this.redirects.push(target?.startsWith('~') ? undefined : target)
  }
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

/** The text of a word that the shell leaves as it is once quotes are gone; undefined for any other. */
function staticText(word: Word): string | undefined {
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
