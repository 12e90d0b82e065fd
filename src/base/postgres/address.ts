import { RathError } from '../errors.ts'

/** Where a database is, without its password: what messages show. `what` is kept there, such as `store`. */
export function shownAddress(url: string, what: string): string {
  // The error of a failed parse holds the whole address, so it is not passed on.
  const parsed = URL.canParse(url) ? new URL(url) : undefined
  if (parsed && /^postgres(ql)?:$/.test(parsed.protocol)) {
    const { protocol, username, host, pathname, searchParams } = parsed
    const socket = searchParams.get('host')
    return `${protocol}//${username && `${username}@`}${host}${pathname}${socket ? `?host=${socket}` : ''}`
  }
  throw new RathError(
    'invalid-argument',
    `The address of the PostgreSQL ${what} cannot be read: use postgres://USER:PASSWORD@HOST:PORT/DATABASE, ` +
      'with characters such as / # ? in the password percent-encoded.',
  )
}
