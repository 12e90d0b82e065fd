import { type Command, InvalidArgumentError } from 'commander'
import type { Output } from './output.ts'

/** One command, in a file of its own that is loaded only when the command is used. */
export interface CommandFile {
  /** Its arguments, options, examples and what it does. `whole` is the program with every command in full. */
  define(command: Command, output: Output, whole: () => Promise<Command>): void
}

/** The option of every command that reads or writes a store. */
export interface StoreOption {
  readonly store?: string
}

export interface JsonOption {
  readonly json?: boolean
}

export function withStore(command: Command): Command {
  return command.option(
    '--store <address>',
    'sqlite:PATH or postgres://…; OPENRATH_STORE, else .openrath/rath.db in this folder',
  )
}

export function withJson(command: Command): Command {
  return command.option('--json', 'print JSON, for programs')
}

/** Shown at the end of a command's help: what to type, and what it is for. */
export function examples(
  command: Command,
  lines: readonly (readonly [line: string, purpose: string])[],
): void {
  const width = Math.max(...lines.map(([line]) => line.length))
  const text = lines.map(([line, purpose]) => `  ${line.padEnd(width)}  ${purpose}`)
  command.addHelpText('after', `\nExamples:\n${text.join('\n')}`)
}

/** Parses an option that is a whole number. */
export function wholeNumber(least = 1): (text: string) => number {
  return text => {
    const number = Number(text)
    if (Number.isSafeInteger(number) && number >= least) return number
    throw new InvalidArgumentError(`It must be a whole number from ${least}.`)
  }
}

/** Parses an option that is JSON; what is no JSON at all is taken as text. */
export function jsonOrText(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}

/** Parses `30s`, `10m`, `2h`, `7d` to milliseconds. */
export function timeSpan(text: string): number {
  const [, number, unit] = /^(\d+)(ms|s|m|h|d)$/.exec(text) ?? []
  if (number === undefined) throw new InvalidArgumentError('It must be a time such as 30s, 10m, 2h or 7d.')
  return Number(number) * (milliseconds[unit as keyof typeof milliseconds] as number)
}

const milliseconds = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 }
