import { RathError } from '../../../base/errors.ts'

/** Where a store is, without its password: what messages and `driver.url` show. */
export function shownAddress(url: string): string {
  // The error of a failed parse holds the whole address, so it is not passed on.
  if (!URL.canParse(url)) throw malformed()
  const { protocol, username, host, pathname, searchParams } = new URL(url)
  if (protocol !== 'postgres:' && protocol !== 'postgresql:') throw malformed()
  const socket = searchParams.get('host')
  return `${protocol}//${username && `${username}@`}${host}${pathname}${socket ? `?host=${socket}` : ''}`
}

function malformed(): RathError {
  return new RathError(
    'invalid-argument',
    'The address of the PostgreSQL store cannot be read: use postgres://USER:PASSWORD@HOST:PORT/DATABASE, ' +
      'with characters such as / # ? in the password percent-encoded.',
  )
}
