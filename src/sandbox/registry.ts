import { RathError, show } from '../base/errors.ts'
import { localBackend } from './drivers/local/driver.ts'
import type { SandboxBackend } from './spec.ts'

/** Backends by name: `local`, which is always there, and the ones given. One called `local` takes its place. */
export class SandboxRegistry {
  readonly #backends: ReadonlyMap<string, SandboxBackend>

  constructor(given: readonly SandboxBackend[] = []) {
    const backends = new Map<string, SandboxBackend>()
    for (const backend of given) {
      if (backends.has(backend.name)) {
        throw new RathError('invalid-argument', `Two sandbox backends are called ${show(backend.name)}.`)
      }
      backends.set(backend.name, backend)
    }
    if (!backends.has('local')) backends.set('local', localBackend())
    this.#backends = backends
  }

  get names(): readonly string[] {
    return [...this.#backends.keys()].sort()
  }

  get(name: string): SandboxBackend {
    const backend = this.#backends.get(name)
    if (backend !== undefined) return backend
    throw new RathError(
      'unknown-sandbox',
      `There is no sandbox backend ${show(name)}; there are ${this.names.join(', ')}. ` +
        `Give others to createRuntime({ sandboxes: [backend] }).`,
      { data: { name, known: [...this.names] } },
    )
  }
}
