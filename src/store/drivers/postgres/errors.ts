import { RathError } from '../../../base/errors.ts'
import { shownAddress as shown } from '../../../base/postgres/address.ts'
import {
  fateUnknown,
  inWords,
  isLost,
  stateOf,
  unreachable,
  type Words,
} from '../../../base/postgres/errors.ts'

const what = 'The store'
const kept = '; what was acknowledged is kept'

const words: Words = {
  '25006': [
    'store-read-only',
    'may only be read: connect to the primary server as a user who may write, or open it with readOnly.',
  ],
  '42501': [
    'store-failed',
    'does not let this user do that. Grant it CREATE on the database, or all on the schema openrath and what is in it.',
  ],
  '53100': [
    'store-full',
    `cannot grow: the server’s disk is full. Free some space there and try again${kept}.`,
  ],
  '55P03': [
    'store-busy',
    'is busy: another process has been writing for too long. Try again, or raise busyTimeout.',
  ],
  XX002: [
    'store-corrupt',
    'has a damaged index. Rebuild it with REINDEX SCHEMA openrath, or restore a backup of the database.',
  ],
}

/** A transaction met another one's work and has to start over with fresh rows. */
export class Overtaken extends Error {}

export function isOvertaken(error: unknown): boolean {
  const state = stateOf(error)
  return error instanceof Overtaken || state === '40001' || state === '40P01'
}

/** The server has no room or is not up yet; waiting can help. */
export function isFullHouse(error: unknown): boolean {
  const state = stateOf(error)
  return state === '53300' || state === '57P03'
}

/** The error of `pg` or the server in our words; anything else passes unchanged. */
export function toStoreError(error: unknown, url: string): unknown {
  if (isLost(error)) return unreachable(error, what, url, kept)
  return isOvertaken(error) || isPoolWait(error) ? busy(url, error) : inWords(error, what, url, words)
}

/** For whatever goes wrong while connecting. */
export function toConnectError(error: unknown, url: string): unknown {
  if (error instanceof RathError || stateOf(error) !== undefined || isPoolWait(error))
    return toStoreError(error, url)
  return unreachable(error, what, url, kept)
}

/** The connection broke between asking for the commit and hearing about it. */
export function unknownFate(error: unknown, url: string): RathError {
  return fateUnknown(
    error,
    url,
    'Putting a session again is safe; before appending again, read the session, or append with `after`.',
  )
}

function busy(url: string, cause: unknown): RathError {
  return new RathError(
    'store-busy',
    `The store ${url} is busy: others kept changing the same rows, or every connection is in use. Try again, or raise busyTimeout.`,
    { cause, data: { url } },
  )
}

function isPoolWait(error: unknown): boolean {
  return error instanceof Error && error.message === 'timeout exceeded when trying to connect'
}

/** Where a store is, without its password: what messages and `driver.url` show. */
export function shownAddress(url: string): string {
  return shown(url, 'store')
}
