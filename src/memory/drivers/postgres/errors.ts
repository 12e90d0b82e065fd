import { type ErrorCode, RathError } from '../../../base/errors.ts'

/** What the server says (SQLSTATE) that a caller can do something about, and what. */
const known: Readonly<Record<string, readonly [ErrorCode, string]>> = {
  '25006': ['store-read-only', 'may only be read: connect to the primary server as a user who may write.'],
  '28000': ['store-failed', 'refused this user. Check the address and the server’s pg_hba.conf.'],
  '28P01': ['store-failed', 'refused the user or the password. Check both in the address.'],
  '3D000': ['store-failed', 'names a database that does not exist. Create it with createdb, then try again.'],
  '42501': [
    'store-failed',
    'does not let this user do that. Grant it CREATE on the database, or all on the schema openrath_memory and what is in it.',
  ],
  '53100': ['store-full', 'cannot grow: the server’s disk is full. Free some space there and try again.'],
  '53300': [
    'store-busy',
    'has no connection left. Try again, close other clients, or raise max_connections.',
  ],
  '55P03': ['store-busy', 'is busy: another process has been writing for too long. Try again.'],
  '57P03': ['store-busy', 'is starting up or shutting down. Try again in a moment.'],
  '40001': ['store-busy', 'is busy: others kept changing the same rows. Try again.'],
  '40P01': ['store-busy', 'is busy: others kept changing the same rows. Try again.'],
  XX001: ['store-corrupt', 'is damaged. It was left as it is: restore a backup of the database.'],
  XX002: ['store-corrupt', 'has a damaged index. Rebuild it with REINDEX SCHEMA openrath_memory.'],
}

const lostStates = new Set(['25P03', '57P01', '57P02', '57P05'])

/** The connection is gone, and with it every transaction that was not committed. */
export function isLost(error: unknown): boolean {
  if (!(error instanceof Error) || error instanceof RathError) return false
  const state = stateOf(error)
  if (state !== undefined) return lostStates.has(state) || state.startsWith('08')
  const { code = '' } = error as NodeJS.ErrnoException
  return (
    /^(ECONN|EPIPE|ETIMEDOUT|EHOST|ENET|ENOTFOUND|EAI_)/.test(code) ||
    /^Connection |^Client /.test(error.message)
  )
}

/** The error of `pg` or the server in our words; anything else passes unchanged. */
export function toMemoryError(error: unknown, url: string): unknown {
  if (error instanceof RathError) return error
  if (isLost(error)) return unreachable(error as Error, url)
  const state = stateOf(error)
  if (state === undefined) return error
  const [code, text] = known[state] ?? ['store-failed', `failed: ${(error as Error).message} (${state}).`]
  return new RathError(code, `The memory ${url} ${text}`, { cause: error, data: { url, sqlstate: state } })
}

/** For whatever goes wrong while connecting. */
export function toConnectError(error: unknown, url: string): unknown {
  if (error instanceof RathError || stateOf(error) !== undefined) return toMemoryError(error, url)
  return unreachable(error instanceof Error ? error : new Error(String(error)), url)
}

/** The connection broke between asking for the commit and hearing about it. */
export function unknownFate(error: unknown, url: string): RathError {
  return new RathError(
    'store-unreachable',
    `The connection to ${url} broke while it was committing: this may or may not have been kept. Committing a session and writing ` +
      'entries with keys again is safe.',
    { cause: error, data: { url, fate: 'unknown' } },
  )
}

function unreachable(error: Error, url: string): RathError {
  const reason = error.message || ((error as NodeJS.ErrnoException).code ?? error.name)
  return new RathError(
    'store-unreachable',
    `The memory ${url} cannot be reached (${reason}). Check that the server runs and that the address is right, then try again.`,
    { cause: error, data: { url } },
  )
}

function stateOf(error: unknown): string | undefined {
  const { code, severity } = (error ?? {}) as { code?: string; severity?: string }
  return typeof code === 'string' && typeof severity === 'string' ? code : undefined
}
