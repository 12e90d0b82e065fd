import { RathError, show } from '../base/errors.ts'
import type { AiEmbeddingModel, Embedder } from './embedding.ts'
import type { MemoryBackend, MemoryCapabilities } from './spec.ts'

/** What the backends of ours are opened with. */
export interface MemoryRegistryOptions {
  /** Where `.openrath` lies or shall lie. The working directory by default. */
  readonly folder?: string
  /** Finds by meaning, too: an AI SDK embedding model, or an embedder of your own. */
  readonly embed?: Embedder | AiEmbeddingModel
  /** Addresses and keys of servers; the environment of the process by default. */
  readonly env?: Readonly<Record<string, string | undefined>>
}

/** Backends by name: ours, loaded when first used, and the ones given. One of the same name takes the place of one of ours. */
export class MemoryRegistry {
  readonly #backends: ReadonlyMap<string, MemoryBackend>

  constructor(given: readonly MemoryBackend[] = [], options: MemoryRegistryOptions = {}) {
    const backends = new Map<string, MemoryBackend>()
    for (const backend of given) {
      if (backends.has(backend.name)) {
        throw new RathError('invalid-argument', `Two memory backends are called ${show(backend.name)}.`)
      }
      backends.set(backend.name, backend)
    }
    for (const backend of ours(options)) {
      if (!backends.has(backend.name)) backends.set(backend.name, backend)
    }
    this.#backends = backends
  }

  get names(): readonly string[] {
    return [...this.#backends.keys()].sort()
  }

  get(name: string): MemoryBackend {
    const backend = this.#backends.get(name)
    if (backend !== undefined) return backend
    throw new RathError(
      'unknown-memory',
      `There is no memory backend ${show(name)}; there are ${this.names.join(', ')}. ` +
        `Give others to createRuntime({ memories: [backend] }).`,
      { data: { name, known: [...this.names] } },
    )
  }
}

function ours(options: MemoryRegistryOptions): MemoryBackend[] {
  const { env, ...rest } = options
  const from = env && { env }
  const vectors = options.embed !== undefined
  const all = { vectors, history: true, expiry: true, lanes: true, resources: true }
  return [
    lazy('local', all, async () => (await import('./drivers/local/local-memory.ts')).localMemory(rest)),
    lazy('postgres', all, async () => {
      const { postgresMemory } = await import('./drivers/postgres/driver.ts')
      return postgresMemory({ ...from, ...(rest.embed && { embed: rest.embed }) })
    }),
    // It has an embedding model of its own, on the server.
    lazy('openviking', { ...all, vectors: true, history: false, expiry: false, lanes: false }, async () =>
      (await import('./drivers/openviking/driver.ts')).openvikingBackend({ ...from }),
    ),
  ]
}

/** A backend whose code is loaded when it is first asked for something. */
function lazy(
  name: string,
  capabilities: MemoryCapabilities,
  load: () => Promise<MemoryBackend>,
): MemoryBackend {
  let loading: Promise<MemoryBackend> | undefined
  const backend = () => {
    loading ??= load()
    return loading
  }
  return {
    name,
    capabilities,
    probe: async () => (await (await backend()).probe?.()) ?? { available: true },
    open: async (spec, options) => (await backend()).open(spec, options),
  }
}
