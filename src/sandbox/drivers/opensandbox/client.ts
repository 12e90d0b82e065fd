import type * as Sdk from '@alibaba-group/opensandbox'
import { RathError, show } from '../../../base/errors.ts'
import type { Environment } from '../../host/environment.ts'

export type Client = typeof Sdk

export interface Address {
  readonly domain: string
  readonly apiKey?: string
}

/** Where the server is; by default what OPEN_SANDBOX_DOMAIN and OPEN_SANDBOX_API_KEY say. */
export function addressOf(given: Partial<Address>, environment: Environment): Address {
  const domain = given.domain ?? environment.OPEN_SANDBOX_DOMAIN
  const apiKey = given.apiKey ?? environment.OPEN_SANDBOX_API_KEY
  if (domain === undefined || domain === '') {
    throw new RathError(
      'sandbox-unavailable',
      'No OpenSandbox server is known: set OPEN_SANDBOX_DOMAIN to its host and port, and OPEN_SANDBOX_API_KEY if it wants a key.',
    )
  }
  return { domain, ...(apiKey !== undefined && { apiKey }) }
}

export async function importClient(): Promise<Client> {
  try {
    return await import('@alibaba-group/opensandbox')
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code !== 'ERR_MODULE_NOT_FOUND') throw cause
    throw new RathError(
      'missing-package',
      'The sandbox opensandbox needs a package that is not installed: run `npm install @alibaba-group/opensandbox`.',
      { cause, data: { package: '@alibaba-group/opensandbox' } },
    )
  }
}

/** The status that the server answered with; undefined when it did not. Codes differ from call to call, the status does not. */
export function statusOf(error: unknown): number | undefined {
  const { statusCode } = error as { statusCode?: unknown }
  return typeof statusCode === 'number' ? statusCode : undefined
}

/** What the server said, as an error of ours. */
export function serverError(error: unknown, doing: string, domain: string): RathError {
  if (error instanceof RathError) return error
  const status = statusOf(error)
  const { message, cause } = error as Error
  const options = { cause: error, ...(status !== undefined && { data: { status } }) }
  if (status === 401 || status === 403) {
    return new RathError(
      'sandbox-unavailable',
      `The OpenSandbox server at ${domain} refuses the key; set OPEN_SANDBOX_API_KEY to one that it knows.`,
      options,
    )
  }
  if (status === undefined && message === 'fetch failed') {
    return new RathError(
      'sandbox-unavailable',
      `No OpenSandbox server answers at ${show(domain)}: ${(cause as Error | undefined)?.message}. Start it, or mend OPEN_SANDBOX_DOMAIN.`,
      options,
    )
  }
  return new RathError('sandbox-failed', `OpenSandbox failed while ${doing}: ${message}`, options)
}
