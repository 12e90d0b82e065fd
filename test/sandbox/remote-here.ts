import { cp } from 'node:fs/promises'
import { RathError } from '../../src/base/errors.ts'
import { localBackend } from '../../src/sandbox/drivers/local/driver.ts'
import type { Sandbox, SandboxBackend } from '../../src/sandbox/spec.ts'

export interface RemoteHere {
  readonly backend: SandboxBackend
  /** By id; what is closed is not among them. */
  readonly open: ReadonlyMap<string, Sandbox>
}

/** A backend whose files the runtime cannot see: folders of this machine that it does not tell of. Forks are copies. */
export function remoteHere({ forks = true, attaches = true } = {}): RemoteHere {
  const local = localBackend()
  const open = new Map<string, Sandbox>()

  function shown(sandbox: Sandbox): Sandbox {
    const { id, cwd, capabilities, files } = sandbox
    const close = async () => {
      open.delete(id)
      await sandbox.close()
    }
    const remote: Sandbox = {
      id,
      backend: 'remote',
      cwd,
      capabilities,
      files,
      exec: (command, options) => sandbox.exec(command, options),
      ...(forks && { fork: (count: number) => Promise.all(Array.from({ length: count }, () => copy(cwd))) }),
      close,
      [Symbol.asyncDispose]: close,
    }
    open.set(id, remote)
    return remote
  }

  async function copy(from: string): Promise<Sandbox> {
    const sandbox = await local.open(undefined)
    await cp(from, sandbox.cwd, { recursive: true })
    return shown(sandbox)
  }

  const attach = async (id: string): Promise<Sandbox> => {
    const found = open.get(id)
    if (found === undefined) throw new RathError('sandbox-unavailable', `There is no sandbox ${id} any more.`)
    return found
  }
  const backend: SandboxBackend = {
    name: 'remote',
    capabilities: local.capabilities,
    open: async () => shown(await local.open(undefined)),
    ...(attaches && { attach }),
  }
  return { backend, open }
}
