import assert from 'node:assert/strict'
import { RathError } from '../base/errors.ts'

/** The error that a promise is refused with; it must have this code. */
export async function refused(promise: Promise<unknown>, code: string): Promise<RathError> {
  const error = await promise.then(
    () => assert.fail(`nothing was refused; ${code} was expected`),
    (reason: unknown) => reason,
  )
  assert.ok(error instanceof RathError, `${String(error)} is not a RathError of code ${code}`)
  assert.equal(error.code, code, error.message)
  return error
}
