import { createContext, Script } from 'node:vm'
import { RathError, show } from '../../base/errors.ts'

export interface Line {
  /** From 1. */
  readonly line: number
  readonly text: string
}

/** The first lines of a text that fit. */
export type LineMatcher = (text: string, limit: number) => Line[]

/** Characters of an expression: making one ready cannot be stopped. */
const longest = 1000
/** Milliseconds that an expression may take for one file. Nothing else runs meanwhile. */
const patience = 250

/** Finds lines that hold a text, or that fit a regular expression. */
export function lineMatcher(wanted: string, isRegex: boolean): LineMatcher {
  if (wanted === '') throw new RathError('invalid-argument', 'A search for nothing finds every line.')
  if (wanted.includes('\n')) {
    throw new RathError('invalid-argument', 'A search looks at one line at a time; search for one of them.')
  }
  if (!isRegex) {
    const fits = (line: string) => line.includes(wanted)
    return (text, limit) => (fits(text) ? pick(text, limit, fits) : [])
  }
  if (wanted.length > longest) {
    throw new RathError(
      'invalid-argument',
      `An expression has at most ${longest} characters, not ${wanted.length}.`,
    )
  }
  const expression = expressionOf(wanted)
  // A model's expression can take longer than the universe; a script can be stopped, a function of ours cannot.
  const sandbox = createContext({ pick, expression, text: '', limit: 0 })
  const script = new Script('pick(text, limit, line => expression.test(line))')
  return (text, limit) => {
    Object.assign(sandbox, { text, limit })
    try {
      return script.runInContext(sandbox, { timeout: patience })
    } catch (error) {
      const { code, message } = error as { code?: unknown; message: string }
      if (code !== 'ERR_SCRIPT_EXECUTION_TIMEOUT')
        throw new RathError('invalid-argument', `${message}. Make it simpler.`)
      throw new RathError(
        'invalid-argument',
        `The expression ${show(wanted)} takes too long; make it simpler, or search for a plain text.`,
      )
    }
  }
}

function pick(text: string, limit: number, fits: (line: string) => boolean): Line[] {
  const found: Line[] = []
  let number = 0
  for (let start = 0; start < text.length && found.length < limit; ) {
    const end = text.indexOf('\n', start)
    const line = text.slice(start, end < 0 ? text.length : end).replace(/\r$/, '')
    number++
    if (fits(line)) found.push({ line: number, text: line })
    if (end < 0) break
    start = end + 1
  }
  return found
}

function expressionOf(wanted: string): RegExp {
  try {
    return new RegExp(wanted)
  } catch (error) {
    throw new RathError(
      'invalid-argument',
      `${(error as Error).message}. Search for a plain text, or mend it.`,
    )
  }
}
