import { CommanderError } from 'commander'
import { type ErrorCode, RathError } from '../base/errors.ts'
import { knownSecrets } from '../run/open-store.ts'
import { createRedactor, secretsOf } from '../store/redact.ts'
import type { Output } from './output.ts'
import { plain, safeJson } from './text.ts'

/** A command used in a way it does not know: one line says what to do instead. */
export class UsageError extends Error {
  override readonly name = 'UsageError'
}

/** Names something that is not there: the command was used wrongly, and nothing was done. */
const usageCodes: ReadonlySet<ErrorCode> = new Set([
  'unknown-session',
  'ambiguous-session',
  'unknown-run',
  'unknown-chunk',
  'unknown-approval',
  'unknown-memory',
  'unknown-sandbox',
])

/** Says what went wrong, and gives the exit code for it. A key in the environment or in a config file is not shown. */
export function report(thrown: unknown, output: Output, isJson: boolean): ExitCode {
  const error = createRedactor(secretsHere()).error(thrown)
  const code = codeFor(error)
  const { message } = error as Error
  if (isJson) {
    const known = error instanceof RathError ? { code: error.code, message, data: error.data } : { message }
    output.tell(safeJson({ error: known }) ?? '')
  } else output.tell(`${output.paint('red', 'rath:', output.stderr)} ${plain(sentence(error))}`)
  return code
}

/** What cannot be read is what is being reported. */
function secretsHere(): Record<string, string> {
  try {
    return knownSecrets()
  } catch {
    return secretsOf(process.env)
  }
}

function codeFor(error: unknown): ExitCode {
  if (error instanceof UsageError || error instanceof CommanderError) return exit.usage
  if (!(error instanceof RathError)) return exit.failed
  if (error.code === 'run-waiting' || error.code === 'needs-review') return exit.waiting
  return usageCodes.has(error.code) ? exit.usage : exit.failed
}

/** An error of ours says everything in its message; of any other, where it happened helps. */
function sentence(error: unknown): string {
  if (error instanceof RathError || error instanceof UsageError) return error.message
  // What the system says about a file names it.
  if (error instanceof Error && 'syscall' in error) return error.message
  if (error instanceof Error) return error.stack ?? error.message
  return String(error)
}

/** What the exit code of a command says. */
export const exit = { done: 0, failed: 1, usage: 2, waiting: 3 } as const

export type ExitCode = (typeof exit)[keyof typeof exit]
