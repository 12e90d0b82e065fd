import { type ErrorCode, RathError } from '../errors.ts'

/** What the server says (SQLSTATE) that a caller can do something about, and what. */
export type Words = Readonly<Record<string, readonly [ErrorCode, string]>>

const words: Words = {
  '28000': ['store-failed', 'refused this user. Check the address and the server’s pg_hba.conf.'],
  '28P01': ['store-failed', 'refused the user or the password. Check both in the address.'],
  '3D000': ['store-failed', 'names a database that does not exist. Create it with createdb, then try again.'],
  '53300': [
    'store-busy',
    'has no connection left. Try again, close other clients, or raise max_connections.',
  ],
  '57P03': ['store-busy', 'is starting up or shutting down. Try again in a moment.'],
  XX001: ['store-corrupt', 'is damaged. It was left as it is: restore a backup of the database.'],
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

/** What a server says about a database, such as `The store postgres://h/d`, in our words and its `own`; anything else passes unchanged. */
export function inWords(error: unknown, what: string, url: string, own: Words): unknown {
  const state = stateOf(error)
  if (state === undefined) return error
  const [code, text] = own[state] ??
    words[state] ?? ['store-failed', `failed: ${(error as Error).message} (${state}).`]
  return new RathError(code, `${what} ${url} ${text}`, { cause: error, data: { url, sqlstate: state } })
}

/** `kept` says what became of earlier work, where that is known. */
export function unreachable(error: unknown, what: string, url: string, kept = ''): RathError {
  return new RathError(
    'store-unreachable',
    `${what} ${url} cannot be reached (${reasonOf(error)}). Check that the server runs and that the address is right, then try again${kept}.`,
    { cause: error, data: { url } },
  )
}

/** The connection broke between asking for the commit and hearing about it. */
export function fateUnknown(error: unknown, url: string, advice: string): RathError {
  return new RathError(
    'store-unreachable',
    `The connection to ${url} broke while it was committing: this may or may not have been kept. ${advice}`,
    { cause: error, data: { url, fate: 'unknown' } },
  )
}

/** The server's code, where it is the server that speaks. */
export function stateOf(error: unknown): string | undefined {
  const { code, severity } = (error ?? {}) as { code?: string; severity?: string }
  return typeof code === 'string' && typeof severity === 'string' ? code : undefined
}

/** Trying several addresses of a host ends in an error without a message of its own. */
function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  return error.message || ((error as NodeJS.ErrnoException).code ?? error.name)
}
