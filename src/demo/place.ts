import { SandboxRegistry } from '../sandbox/registry.ts'

/** Where the demo works, and how Node is called there. */
export interface DemoPlace {
  readonly backend: 'isolated' | 'local'
  /** Why there are no walls, where there are none. */
  readonly reason?: string
  readonly node: string
}

/** Behind walls where this machine can make them. */
export async function findPlace(): Promise<DemoPlace> {
  const registry = new SandboxRegistry()
  const { available, reason } = (await registry.get('isolated').probe?.()) ?? { available: true }
  const backend = available ? 'isolated' : 'local'
  await using sandbox = await registry.get(backend).open(undefined)
  // The Node of this process is there in any case; `node` reads better where it will do.
  const { exitCode, stdout } = await sandbox.exec('node --version').result
  const isUsable = exitCode === 0 && Number(/^v(\d+)/.exec(new TextDecoder().decode(stdout))?.[1]) >= 20
  const node = isUsable ? 'node' : `'${process.execPath}'`
  return { backend, node, ...(!available && reason !== undefined && { reason }) }
}
