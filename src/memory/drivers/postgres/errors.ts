import { RathError } from '../../../base/errors.ts'
import {
  fateUnknown,
  inWords,
  isLost,
  stateOf,
  unreachable,
  type Words,
} from '../../../base/postgres/errors.ts'

const what = 'The memory'

const words: Words = {
  '25006': ['store-read-only', 'may only be read: connect to the primary server as a user who may write.'],
  '40001': ['store-busy', 'is busy: others kept changing the same rows. Try again.'],
  '40P01': ['store-busy', 'is busy: others kept changing the same rows. Try again.'],
  '42501': [
    'store-failed',
    'does not let this user do that. Grant it CREATE on the database, or all on the schema openrath_memory and what is in it.',
  ],
  '53100': ['store-full', 'cannot grow: the server’s disk is full. Free some space there and try again.'],
  '55P03': ['store-busy', 'is busy: another process has been writing for too long. Try again.'],
  XX002: ['store-corrupt', 'has a damaged index. Rebuild it with REINDEX SCHEMA openrath_memory.'],
}

/** The error of `pg` or the server in our words; anything else passes unchanged. */
export function toMemoryError(error: unknown, url: string): unknown {
  return isLost(error) ? unreachable(error, what, url) : inWords(error, what, url, words)
}

/** For whatever goes wrong while connecting. */
export function toConnectError(error: unknown, url: string): unknown {
  if (error instanceof RathError || stateOf(error) !== undefined) return toMemoryError(error, url)
  return unreachable(error, what, url)
}

/** The connection broke between asking for the commit and hearing about it. */
export function unknownFate(error: unknown, url: string): RathError {
  return fateUnknown(error, url, 'Committing a session and writing entries with keys again is safe.')
}
