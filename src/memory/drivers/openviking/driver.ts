import { RathError, show } from '../../../base/errors.ts'
import type { JsonObject } from '../../../base/json.ts'
import type { MemoryBackend } from '../../spec.ts'
import { type ClientOptions, VikingClient } from './client.ts'
import { capabilities, VikingStore } from './store.ts'

export interface OpenVikingOptions extends Pick<ClientOptions, 'fetch' | 'sleep' | 'random'> {
  /** Read for OPEN_VIKING_URL and OPEN_VIKING_API_KEY; that of the process by default. */
  readonly env?: Readonly<Record<string, string | undefined>>
  readonly now?: () => number
}

/** What `{ backend: 'openviking', … }` may say. The key is not part of it, because a spec may be recorded: it comes from OPEN_VIKING_API_KEY. */
export interface OpenVikingSpec {
  /** OPEN_VIKING_URL by default. */
  readonly url?: string
  readonly account?: string
  readonly user?: string
  /** A commit also has the server draw memories from the session, with its own language model; true by default. */
  readonly extract?: boolean
  /** `search` lets the server's language model rewrite the query first; `find` by default. */
  readonly retrieval?: 'find' | 'search'
  /** Scores below are left out. They are the server's, and depend on its embedding model; 0.1 by default. */
  readonly floor?: number
}

const fields: Readonly<Record<keyof OpenVikingSpec, (value: unknown) => boolean>> = {
  url: isText,
  account: isText,
  user: isText,
  extract: value => typeof value === 'boolean',
  retrieval: value => value === 'find' || value === 'search',
  floor: value => typeof value === 'number' && value >= 0 && value <= 1,
}

/** Memories on an OpenViking server, over its HTTP API. */
export function openvikingBackend(options: OpenVikingOptions = {}): MemoryBackend {
  const { env = process.env, now = Date.now, ...client } = options
  return {
    name: 'openviking',
    capabilities,
    async probe() {
      if (env.OPEN_VIKING_URL) return { available: true }
      return { available: false, reason: 'OPEN_VIKING_URL is not set, and no url was given.' }
    },
    async open(spec = {}, { signal } = {}) {
      const { url = env.OPEN_VIKING_URL, account, user, ...rest } = checkSpec(spec)
      if (!url) {
        throw new RathError(
          'invalid-argument',
          'Where is the OpenViking server? Set OPEN_VIKING_URL, or give { backend: "openviking", url: "http://localhost:1933" }.',
        )
      }
      const key = env.OPEN_VIKING_API_KEY
      const viking = new VikingClient({
        ...client,
        url,
        ...(key && { key }),
        ...(account !== undefined && { account }),
        ...(user !== undefined && { user }),
      })
      await viking.call('GET', '/health', { signal })
      const name = ['openviking', new URL(url).host, account, user]
        .filter(part => part !== undefined)
        .join('/')
      const { extract = true, retrieval = 'find', floor = 0.1 } = rest
      return new VikingStore({ name, client: viking, now, extract, retrieval, floor })
    },
  }
}

function checkSpec(spec: JsonObject): OpenVikingSpec {
  const { backend: _, ...given } = spec
  for (const [name, value] of Object.entries(given)) {
    if (Object.hasOwn(fields, name) && fields[name as keyof OpenVikingSpec](value)) continue
    throw new RathError(
      'invalid-argument',
      `${name}: ${/key|token|secret/i.test(name) ? 'a value' : show(value)} is nothing that the openviking backend takes; there are ` +
        `${Object.keys(fields).join(', ')}. The key goes into OPEN_VIKING_API_KEY.`,
    )
  }
  return given as OpenVikingSpec
}

function isText(value: unknown): boolean {
  return typeof value === 'string' && value !== ''
}
