import type { Pool as PgPool, PoolClient } from 'pg'
import { RathError } from '../../../base/errors.ts'
import { shownAddress } from '../../../base/postgres/address.ts'
import {
  fateUnknown,
  inWords,
  isLost,
  stateOf,
  unreachable,
  type Words,
} from '../../../base/postgres/errors.ts'
import { clientConfig, importPg, openPool, rolledBack } from '../../../base/postgres/open.ts'

export type Value = string | number | boolean | null | readonly (string | number | null)[]

/** Statements, inside a transaction or not. */
export interface Queries {
  query<R>(text: string, values?: readonly Value[]): Promise<R[]>
}

const mostConnections = 4
const longestWaitMs = 30_000
/** A process that hangs in the middle of a transaction may keep its locks for so long. */
const longestPauseMs = 60_000
const setup = `SELECT set_config('lock_timeout', '${longestWaitMs}', false),
  set_config('idle_in_transaction_session_timeout', '${longestPauseMs}', false), set_config('jit', 'off', false)`

/** Connections to one database: a dead one is replaced, errors are in our words. */
export class Pool implements Queries {
  /** Without the password. */
  readonly url: string
  readonly #pool: PgPool
  readonly #owned: boolean
  readonly #known = new WeakSet<PoolClient>()

  private constructor(pool: PgPool, url: string, owned: boolean) {
    this.url = url
    this.#pool = pool
    this.#owned = owned
  }

  /** A pool of its own, for an address. */
  static async open(address: string): Promise<Pool> {
    const url = shownAddress(address, 'memory')
    const config = clientConfig(address, longestWaitMs)
    const pool = openPool(await importPg('memory'), { ...config, max: mostConnections })
    return new Pool(pool, url, true)
  }

  /** Somebody else's, which is left open. */
  static of(pool: PgPool): Pool {
    const { host = 'localhost', database = '' } = pool.options
    return new Pool(pool, `postgres://${host}/${database}`, false)
  }

  /** One statement, run again when a connection that had been idle turns out to be dead. */
  async query<R>(text: string, values?: readonly Value[]): Promise<R[]> {
    for (;;) {
      const { client, fresh } = await this.#lend()
      try {
        const rows = await ask<R>(client, text, values)
        client.release()
        return rows
      } catch (error) {
        const lost = isLost(error)
        client.release(lost)
        if (!lost || fresh) throw toMemoryError(error, this.url)
      }
    }
  }

  /** Commits what `work` did. Starts over when an idle connection turns out to be dead before the commit was asked for. */
  async transaction<T>(work: (queries: Queries) => Promise<T>): Promise<T> {
    for (;;) {
      const { client, fresh } = await this.#lend()
      let committing = false
      try {
        await client.query('BEGIN ISOLATION LEVEL READ COMMITTED')
        const result = await work({ query: (text, values) => ask(client, text, values) })
        committing = true
        await client.query('COMMIT')
        client.release()
        return result
      } catch (error) {
        const lost = isLost(error)
        client.release(lost || !(await rolledBack(client)))
        if (lost && committing) throw unknownFate(error, this.url)
        if (!lost || fresh) throw toMemoryError(error, this.url)
      }
    }
  }

  async close(): Promise<void> {
    if (this.#owned && !this.#pool.ending) await this.#pool.end()
  }

  /** `fresh`: connected for this very use, so that its failure says something about the server. */
  async #lend(): Promise<{ client: PoolClient; fresh: boolean }> {
    try {
      const client = await this.#pool.connect()
      if (this.#known.has(client)) return { client, fresh: false }
      try {
        await client.query(setup)
      } catch (error) {
        client.release(true)
        throw error
      }
      this.#known.add(client)
      return { client, fresh: true }
    } catch (error) {
      throw toConnectError(error, this.url)
    }
  }
}

async function ask<R>(client: PoolClient, text: string, values?: readonly Value[]): Promise<R[]> {
  return (await client.query(text, values ? [...values] : undefined)).rows as R[]
}

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
function toMemoryError(error: unknown, url: string): unknown {
  return isLost(error) ? unreachable(error, what, url) : inWords(error, what, url, words)
}

/** For whatever goes wrong while connecting. */
function toConnectError(error: unknown, url: string): unknown {
  if (error instanceof RathError || stateOf(error) !== undefined) return toMemoryError(error, url)
  return unreachable(error, what, url)
}

/** The connection broke between asking for the commit and hearing about it. */
function unknownFate(error: unknown, url: string): RathError {
  return fateUnknown(error, url, 'Committing a session and writing entries with keys again is safe.')
}
