import { RathError, show } from '../../base/errors.ts'
import { canonicalJson, isPlainObject, type JsonObject } from '../../base/json.ts'
import { MemoryRegistry, type MemoryRegistryOptions } from '../../memory/registry.ts'
import type { MemoryBackend, MemorySpec, MemoryStore } from '../../memory/spec.ts'
import { memoryPreset } from './preset.ts'

/**
 * What an agent's `memory` may be: the name of a preset in the config file or of a backend, a spec (`{ backend: 'local', path: './notes' }`), a
 * backend, or a store that is open already.
 */
export type MemoryLike = MemorySpec | MemoryBackend | MemoryStore

export interface MemoriesOptions extends MemoryRegistryOptions {
  /** Besides `local`, `postgres` and `openviking`. */
  readonly memories?: readonly MemoryBackend[] | undefined
}

/** The memory stores of a runtime. Whoever names the same store shares it; it is closed when the last of them lets go, or with the runtime. */
export class Memories {
  readonly registry: MemoryRegistry
  readonly #open = new Map<string, { readonly opening: Promise<MemoryStore>; readonly users: Set<object> }>()
  readonly #keys = new WeakMap<MemoryBackend, string>()

  constructor({ memories = [], ...options }: MemoriesOptions = {}) {
    this.registry = new MemoryRegistry(memories, options)
  }

  /** The store that `memory` means, opened when it is not open. `user` is who needs it until it releases it. */
  async open(memory: MemoryLike, user: object): Promise<MemoryStore> {
    if (isStore(memory)) return memory
    const { backend, spec } = this.#resolve(memory)
    const key = this.#keyOf(backend, spec)
    let entry = this.#open.get(key)
    if (entry === undefined) {
      entry = { opening: backend.open(spec), users: new Set() }
      this.#open.set(key, entry)
      // What failed may work the next time.
      entry.opening.catch(() => this.#open.delete(key))
    }
    entry.users.add(user)
    return entry.opening
  }

  /** Whether there is a preset or a backend of that name here; nothing is opened. */
  knows(memory: MemoryLike): boolean {
    if (isStore(memory)) return true
    try {
      this.#resolve(memory)
      return true
    } catch {
      return false
    }
  }

  /** Lets go of every store that this one uses. */
  async release(user: object): Promise<void> {
    for (const [key, { opening, users }] of this.#open) {
      if (!users.delete(user) || users.size > 0) continue
      this.#open.delete(key)
      await (await opening).close()
    }
  }

  async close(): Promise<void> {
    const entries = [...this.#open.values()]
    this.#open.clear()
    const closed = await Promise.allSettled(entries.map(async ({ opening }) => (await opening).close()))
    for (const end of closed) if (end.status === 'rejected') throw end.reason
  }

  #resolve(memory: MemorySpec | MemoryBackend): { backend: MemoryBackend; spec: JsonObject | undefined } {
    if (typeof memory === 'string') {
      const preset = memoryPreset(memory, this.registry.names.includes(memory))
      return preset === undefined
        ? { backend: this.registry.get(memory), spec: undefined }
        : this.#resolve(preset)
    }
    if (isBackend(memory)) return { backend: memory, spec: undefined }
    const { backend = 'local', ...spec } = memory
    if (typeof backend !== 'string') {
      throw new RathError(
        'invalid-argument',
        `The backend of a memory is a name such as 'local', not ${show(backend)}.`,
      )
    }
    return { backend: this.registry.get(backend), spec }
  }

  #keyOf(backend: MemoryBackend, spec: JsonObject | undefined): string {
    // Two backends may have one name; what they open is still theirs.
    let identity = this.#keys.get(backend)
    if (identity === undefined) {
      identity = `${backend.name}#${++this.#count}`
      this.#keys.set(backend, identity)
    }
    return canonicalJson([identity, spec ?? {}])
  }

  #count = 0
}

/** Refuses what is no memory, when an agent is made and not when it is first called. */
export function checkMemory(memory: unknown): asserts memory is MemoryLike {
  const isName = typeof memory === 'string' && memory !== ''
  if (isName || isStore(memory) || isBackend(memory) || isPlainObject(memory)) return
  throw new RathError(
    'invalid-argument',
    `memory is 'local', the name of a preset, a spec such as { backend: 'local' }, a backend or an open store, not ${show(memory)}.`,
  )
}

function isStore(memory: unknown): memory is MemoryStore {
  return ['find', 'write', 'commit'].every(
    name => typeof (memory as MemoryStore)?.[name as 'find'] === 'function',
  )
}

function isBackend(memory: unknown): memory is MemoryBackend {
  return typeof (memory as MemoryBackend)?.open === 'function'
}
