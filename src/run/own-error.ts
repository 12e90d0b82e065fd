import { RathError, toRathError } from '../base/errors.ts'

/** The run whose work so far an error carries. */
const runs = new WeakMap<RathError, object>()

/**
 * What was thrown in a run, as an error that can carry its work. One that another run threw too, such as that of a store which neither could
 * open, is copied: nobody is handed the session of somebody else.
 */
export function ownError(thrown: unknown, run: object): RathError {
  const error = toRathError(thrown)
  const { code, message, data } = error
  const isOthers = (runs.get(error) ?? run) !== run
  return taken(isOthers ? new RathError(code, message, { cause: error, data }) : error, run)
}

/** The error of a session that a run was waiting for: it stays as it is, with the work so far on that session. */
export function inputError(thrown: unknown, run: object): RathError {
  return taken(toRathError(thrown), run)
}

function taken(error: RathError, run: object): RathError {
  runs.set(error, run)
  return error
}
