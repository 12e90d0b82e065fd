import { type ErrorCode, RathError } from './errors.ts'

const codes: ReadonlySet<ErrorCode> = new Set([
  'run-waiting',
  'needs-review',
  'run-owned',
  'run-fenced',
  'journal-conflict',
  'replay-diverged',
])

/**
 * Whether an error says that the run itself cannot go on here: it waits for a person, or belongs to somebody else. That is no failure of
 * the work, so nothing retries it, leaves it out or makes a tool's outcome of it.
 */
export function stopsRun(error: unknown): error is RathError {
  try {
    return error instanceof RathError && codes.has(error.code)
  } catch {
    // A revoked proxy cannot even be asked what it is.
    return false
  }
}
