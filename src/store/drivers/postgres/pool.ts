import { setTimeout as sleep } from 'node:timers/promises'
import type { Client, ClientConfig, Pool as PgPool, PoolClient } from 'pg'
import { isLost } from '../../../base/postgres/errors.ts'
import { clientConfig, importPg, openPool, type Pg, rolledBack } from '../../../base/postgres/open.ts'
import type { StoreOptions } from '../../spec.ts'
import { Connection, type TypeParser, type Value } from './connection.ts'
import {
  isFullHouse,
  isOvertaken,
  shownAddress,
  toConnectError,
  toStoreError,
  unknownFate,
} from './errors.ts'

export type PostgresOptions = Pick<StoreOptions, 'durability' | 'readOnly' | 'busyTimeout'>

/** `pg` can leave a connection out of what keeps the process running; its types do not say so. */
export type ListeningClient = Client & { unref(): void }

/** A process that hangs in the middle of a transaction may keep its locks for so long. */
const longestPauseMs = 60_000
const mostConnections = 8
/** How often a new connection may break, too, before the server counts as out of reach. Old ones are replaced without counting. */
const chancesWhenLost = 1

/** Connections to one database: made when needed, replaced when they break, errors in our words. */
export class Pool {
  readonly url: string
  readonly #pg: Pg
  readonly #pool: PgPool
  readonly #config: ClientConfig
  readonly #setup: readonly Value[]
  readonly #busyTimeout: number
  readonly #known = new WeakMap<PoolClient, Connection>()

  private constructor(pg: Pg, address: string, options: PostgresOptions) {
    const { durability = 'full', readOnly = false, busyTimeout = 30_000 } = options
    const wait = Math.max(1, Math.min(Math.ceil(busyTimeout), 2 ** 31 - 1))
    this.url = shownAddress(address)
    this.#pg = pg
    this.#busyTimeout = busyTimeout
    this.#setup = [durability, String(wait), String(longestPauseMs), readOnly ? 'on' : 'off']
    this.#config = clientConfig(address, wait)
    const pipeline = { pipeline: true }
    this.#pool = openPool(pg, { ...this.#config, ...pipeline, max: mostConnections })
  }

  static async open(address: string, options: PostgresOptions): Promise<Pool> {
    shownAddress(address)
    return new Pool(await importPg('store'), address, options)
  }

  /** One statement outside a transaction. Run again when a connection that had been idle turns out to be dead. */
  async query<R>(text: string, values?: readonly Value[]): Promise<R[]> {
    return this.once(connection => connection.query<R>(text, values))
  }

  /**
   * Commits what `work` did; it begins the transaction itself, in one go with what it reads first. Starts over, with `attempt` counting,
   * when others got in the way or when the connection broke before the commit was asked for: nothing of it has happened then.
   */
  async transaction<T>(work: (connection: Connection, attempt: number) => Promise<T>): Promise<T> {
    const deadline = Date.now() + this.#busyTimeout
    let chances = chancesWhenLost
    for (let attempt = 0; ; attempt++) {
      const { connection, fresh } = await this.#lend()
      let committing = false
      try {
        const result = await work(connection, attempt)
        committing = true
        await connection.query('COMMIT')
        connection.release()
        return result
      } catch (error) {
        const lost = isLost(error)
        connection.release(lost || !(await rolledBack(connection)))
        if (lost && committing) throw unknownFate(error, this.url)
        const again = isOvertaken(error) ? Date.now() < deadline : lost && (!fresh || chances-- > 0)
        if (!again) throw toStoreError(error, this.url)
        if (attempt > 0) await sleep(Math.random() * Math.min(2 + attempt * 2, 50))
      }
    }
  }

  /** A connection outside the pool, for listening. */
  client(): ListeningClient {
    return new this.#pg.Client(this.#config) as unknown as ListeningClient
  }

  async close(): Promise<void> {
    if (!this.#pool.ending) await this.#pool.end()
  }

  async once<T>(work: (connection: Connection) => Promise<T>): Promise<T> {
    let chances = chancesWhenLost
    for (;;) {
      const { connection, fresh } = await this.#lend()
      try {
        const result = await work(connection)
        connection.release()
        return result
      } catch (error) {
        const lost = isLost(error)
        connection.release(lost)
        if (!lost || (fresh && chances-- <= 0)) throw toStoreError(error, this.url)
      }
    }
  }

  /** `fresh`: connected for this very use, so that its failure says something about the server. */
  async #lend(): Promise<{ connection: Connection; fresh: boolean }> {
    const deadline = Date.now() + this.#busyTimeout
    for (let attempt = 0; ; attempt++) {
      try {
        const client = await this.#pool.connect()
        const known = this.#known.get(client)
        return { connection: known ?? (await this.#prepare(client)), fresh: known === undefined }
      } catch (error) {
        if (!isFullHouse(error) || Date.now() >= deadline) throw toConnectError(error, this.url)
        await sleep(Math.min(20 + attempt * 20, 500))
      }
    }
  }

  async #prepare(client: PoolClient): Promise<Connection> {
    try {
      await client.query(setup, [...this.#setup])
    } catch (error) {
      client.release(true)
      throw error
    }
    const connection = new Connection(client, this.#pg.types.getTypeParser as TypeParser)
    this.#known.set(client, connection)
    return connection
  }
}

/**
 * What every connection is told first. A server that waits for its replicas to apply a commit goes on doing so. Compiling queries is
 * turned off: the cost of following a chain is always guessed far too high.
 */
const setup = `
  SELECT set_config('synchronous_commit', CASE
      WHEN $1 = 'normal' THEN 'off'
      WHEN current_setting('synchronous_commit') = 'remote_apply' THEN 'remote_apply'
      ELSE 'on' END, false),
    set_config('lock_timeout', $2, false), set_config('idle_in_transaction_session_timeout', $3, false),
    set_config('default_transaction_read_only', $4, false), set_config('jit', 'off', false)`
