import type { ClientConfig, Pool, PoolConfig } from 'pg'
import { RathError } from '../errors.ts'

export type Pg = Pick<typeof import('pg'), 'Pool' | 'Client' | 'types'>

/** The package, which is installed by who needs it: for a `store`, say. */
export async function importPg(what: string): Promise<Pg> {
  try {
    return (await import('pg')).default
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code !== 'ERR_MODULE_NOT_FOUND') throw cause
    throw new RathError(
      'missing-package',
      `A PostgreSQL ${what} needs the package pg, which is not installed: run \`npm install pg\`.`,
      { cause, data: { package: 'pg' } },
    )
  }
}

export function clientConfig(address: string, longestWaitMs: number): ClientConfig {
  return {
    connectionString: address,
    connectionTimeoutMillis: longestWaitMs,
    keepAlive: true,
    application_name: 'openrath',
  }
}

/** Connections that are made when needed, and keep no process running. */
export function openPool(pg: Pg, config: PoolConfig): Pool {
  const pool = new pg.Pool({ ...config, allowExitOnIdle: true })
  // An idle connection broke: the pool has dropped it already, and the next use makes a new one.
  pool.on('error', () => {})
  // Without a listener from the start, a connection that breaks before its first query, or while it is lent, would end the process.
  // Its queries fail anyway.
  pool.on('connect', client => client.on('error', () => {}))
  return pool
}

/** Whether a connection can be used again after a transaction that failed. */
export async function rolledBack(connection: { query(text: string): Promise<unknown> }): Promise<boolean> {
  return connection.query('ROLLBACK').then(
    () => true,
    () => false,
  )
}
