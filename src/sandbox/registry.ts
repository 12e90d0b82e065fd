import { RathError, show } from '../base/errors.ts'
import { dockerBackend } from './drivers/docker/driver.ts'
import { isolatedBackend } from './drivers/isolated/driver.ts'
import { localBackend } from './drivers/local/driver.ts'
import { openSandboxBackend } from './drivers/opensandbox/driver.ts'
import type { SandboxBackend } from './spec.ts'

/** Backends by name: ours, which ask for what they need when they are first used, and the ones given. One of the same name takes the place of one of ours. */
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
    const ours = [localBackend(), isolatedBackend(), dockerBackend(), openSandboxBackend()]
    for (const backend of ours) {
      if (!backends.has(backend.name)) backends.set(backend.name, backend)
    }
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
