import type { Pool as PgPool } from 'pg'
import { cancelledError } from '../../../base/abort.ts'
import { RathError, show } from '../../../base/errors.ts'
import type { JsonObject } from '../../../base/json.ts'
import { allCapabilities } from '../../capabilities.ts'
import { type AiEmbeddingModel, type Embedder, toEmbedder } from '../../embedding.ts'
import type { ResourceLimits } from '../../resource.ts'
import type { MemoryBackend } from '../../spec.ts'
import { Pool } from './pool.ts'
import { migrate, placeNamed } from './schema.ts'
import { PostgresStore } from './store.ts'
import { Vectors } from './vectors.ts'

export interface PostgresMemoryOptions {
  /** `postgres://USER:PASSWORD@HOST/DATABASE`, such as that of the store. By default what OPENRATH_MEMORY_URL says. */
  readonly url?: string
  /** A pool of `pg` instead of an address. It stays open when the memory is closed. */
  readonly pool?: PgPool
  /** Finds by meaning, too, where the server has pgvector: an AI SDK embedding model, or an embedder of your own. */
  readonly embed?: Embedder | AiEmbeddingModel
  /** Milliseconds since the epoch. The clock of the system by default. */
  readonly now?: () => number
  readonly env?: Readonly<Record<string, string | undefined>>
  /** What may be taken in. */
  readonly resources?: ResourceLimits
}

/**
 * Memories in a PostgreSQL database, in a schema of their own beside that of the store. A spec is `{ name }`, `default` by default: a database
 * holds any number of memories. The address is not part of it, because a spec may be recorded and an address holds a password.
 */
export function postgresMemory(options: PostgresMemoryOptions = {}): MemoryBackend {
  const { now = Date.now, env = process.env, resources = {} } = options
  const embedder = options.embed === undefined ? undefined : toEmbedder(options.embed)
  const address = () => options.url ?? env.OPENRATH_MEMORY_URL
  return {
    name: 'postgres',
    capabilities: allCapabilities(embedder !== undefined),
    async probe() {
      if (options.pool || address()) return { available: true }
      return { available: false, reason: 'OPENRATH_MEMORY_URL is not set, and no url or pool was given.' }
    },
    async open(spec: JsonObject = {}, { signal } = {}) {
      if (signal?.aborted) throw cancelledError(signal)
      const name = nameIn(spec)
      const pool = options.pool ? Pool.of(options.pool) : await Pool.open(addressOrRefuse(address()))
      try {
        await migrate(pool)
        const place = await placeNamed(pool, name)
        const vectors = embedder && (await Vectors.open(pool, place, embedder))
        return new PostgresStore({
          name: `postgres:${name}`,
          pool,
          place,
          now,
          resources,
          ...(vectors !== undefined && { vectors }),
        })
      } catch (error) {
        await pool.close()
        throw error
      }
    },
  }
}

function addressOrRefuse(address: string | undefined): string {
  if (address) return address
  throw new RathError(
    'invalid-argument',
    'Where is the PostgreSQL memory? Set OPENRATH_MEMORY_URL, or give postgresMemory({ url }).',
  )
}

function nameIn(spec: JsonObject): string {
  const { backend: _, name = 'default', ...rest } = spec
  const unknown = Object.keys(rest)
  if (unknown.length > 0) {
    throw new RathError(
      'invalid-argument',
      `A PostgreSQL memory has a name, and no ${unknown.join(', ')}. Its address goes into OPENRATH_MEMORY_URL or postgresMemory({ url }).`,
    )
  }
  if (typeof name === 'string' && /^[\p{L}\p{N}][\p{L}\p{N}._-]{0,63}$/u.test(name)) return name
  throw new RathError(
    'invalid-argument',
    `A memory's name is 1 to 64 letters, digits, dots, dashes or underscores, not ${show(name)}.`,
  )
}
