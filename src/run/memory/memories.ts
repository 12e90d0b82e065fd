import { RathError, show } from '../../base/errors.ts'
import { canonicalJson, isPlainObject, type JsonObject } from '../../base/json.ts'
import { MemoryRegistry, type MemoryRegistryOptions } from '../../memory/registry.ts'
import type { MemoryBackend, MemorySpec, MemoryStore } from '../../memory/spec.ts'
import { readAgreedConfig, readConfig } from '../../model/config.ts'
import { processSurroundings } from '../../model/surroundings.ts'

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

/**
 * A preset of the config file, `memory.providers.NAME`, as a spec; undefined when there is none of that name. The file may lie in a folder that
 * somebody else wrote, so it cannot say which server a key from the environment is sent to. A preset that is named like a backend is one of
 * that backend, and a config that nobody has agreed to has none.
 */
function memoryPreset(name: string, isBackend: boolean): JsonObject | undefined {
  const { raw, paths } = (isBackend ? readAgreedConfig : readConfig)(processSurroundings())
  const { memory } = raw
  const presets = isPlainObject(memory) ? memory.providers : undefined
  const preset = isPlainObject(presets) && Object.hasOwn(presets, name) ? presets[name] : undefined
  if (preset === undefined) return undefined
  if (!isPlainObject(preset)) {
    throw new RathError(
      'config-malformed',
      `${paths[0]}: memory.providers.${name} must be an object, not ${show(preset)}.`,
    )
  }
  const {
    backend_kind: backend = 'local',
    embedding_provider: _,
    chat_provider: __,
    ...spec
  } = preset as JsonObject
  if (isBackend && backend !== name) {
    throw new RathError(
      'config-malformed',
      `${paths[0]}: memory.providers.${name} is named like the backend ${name} and is one of ${show(backend)}. Call it otherwise.`,
    )
  }
  if (spec.url !== undefined) {
    throw new RathError(
      'config-malformed',
      `${paths[0]}: memory.providers.${name} names a url, and a config file cannot send keys of yours somewhere. Give it in code: memory: { backend: ${show(backend)}, url }.`,
    )
  }
  return { backend, ...spec }
}
