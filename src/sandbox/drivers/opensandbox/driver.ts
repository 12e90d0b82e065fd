import type { Sandbox as Remote, SandboxCreateOptions } from '@alibaba-group/opensandbox'
import { cancelledError } from '../../../base/abort.ts'
import { RathError, show } from '../../../base/errors.ts'
import { thisMark } from '../../../base/process.ts'
import type { Environment } from '../../host/environment.ts'
import type { SharedCopy } from '../../shared-copy.ts'
import { parseStamps, stampScript } from '../../shell/changes.ts'
import type { Sandbox, SandboxBackend, SandboxCapabilities } from '../../spec.ts'
import { walls } from '../../walls.ts'
import { type Address, addressOf, importClient, serverError, statusOf } from './client.ts'
import { type OpenSandboxSpec, parseOpenSandboxSpec } from './open-sandbox-spec.ts'
import { OpenSandbox } from './sandbox.ts'
import { runScript } from './script.ts'

export interface OpenSandboxOptions {
  /** Host and port of the server; OPEN_SANDBOX_DOMAIN by default. */
  readonly domain?: string
  /** OPEN_SANDBOX_API_KEY by default. */
  readonly apiKey?: string
  /** For specs that name none. */
  readonly image?: string
  /** Reach sandboxes through the server, where they cannot be reached themselves. */
  readonly throughServer?: boolean
  /** What `passEnv`, the domain and the key are taken from; the environment of this process by default. */
  readonly environment?: Environment
}

const capabilities: SandboxCapabilities = Object.freeze({
  isolation: 'container',
  enforced: Object.freeze({
    ...walls,
    // The server's to enforce, and nothing that can be checked from here.
    network: false,
    memory: false,
    processes: false,
  }),
  stdin: true,
  streaming: true,
  binaryOutput: false,
})

/** Sandboxes of an OpenSandbox server. Needs the package `@alibaba-group/opensandbox`. */
export function openSandboxBackend(options: OpenSandboxOptions = {}): SandboxBackend {
  const { environment = process.env } = options
  return Object.freeze<SandboxBackend>({
    name: 'opensandbox',
    capabilities,
    async probe() {
      try {
        const address = addressOf(options, environment)
        const { SandboxManager } = await importClient()
        const manager = SandboxManager.create({ connectionConfig: connection(address, options) })
        await manager
          .listSandboxInfos({ pageSize: 1 })
          .catch(error => Promise.reject(serverError(error, 'answering', address.domain)))
          .finally(() => manager.close())
        return { available: true }
      } catch (error) {
        return { available: false, reason: (error as Error).message }
      }
    },
    async open(spec, { signal } = {}) {
      const parsed = parseOpenSandboxSpec(spec, options.image)
      if (signal?.aborted) throw cancelledError(signal)
      return openRemote(parsed, options, environment, { signal })
    },
    async attach(id, { signal } = {}) {
      if (signal?.aborted) throw cancelledError(signal)
      return attachRemote(id, options, environment)
    },
  })
}

function connection(address: Address, { throughServer = false }: OpenSandboxOptions) {
  return { ...address, useServerProxy: throughServer, disableMetrics: true }
}

async function openRemote(
  spec: OpenSandboxSpec,
  options: OpenSandboxOptions,
  environment: Environment,
  { signal, copy }: { readonly signal?: AbortSignal | undefined; readonly copy?: SharedCopy },
): Promise<Sandbox> {
  const address = addressOf(options, environment)
  const client = await importClient()
  let remote: Remote | undefined
  try {
    remote = await client.Sandbox.create({
      connectionConfig: connection(address, options),
      ...createOptions(spec, copy),
    })
    if (signal?.aborted) throw cancelledError(signal)
    const sandbox = await sandboxOn(remote, spec, options, environment, copy)
    copy?.hold()
    if (!signal?.aborted) return sandbox
    await sandbox.close()
    throw cancelledError(signal)
  } catch (error) {
    await remote?.kill().catch(() => {})
    await remote?.close()
    throw serverError(error, 'opening a sandbox', address.domain)
  }
}

function createOptions(spec: OpenSandboxSpec, copy: SharedCopy | undefined): SandboxCreateOptions {
  const { image, snapshot, env = {}, hosts, limits = {}, expires = usualExpiry } = spec
  const { memory = 2 * 1024 ** 3, cpus = 1 } = limits
  const from = copy?.id ?? snapshot
  return {
    ...(from === undefined ? { image: image as string } : { snapshotId: from }),
    env: { ...env },
    metadata: { 'openrath.process': thisMark() },
    resource: { cpu: `${Math.round(cpus * 1000)}m`, memory: String(Math.round(memory)) },
    ...(hosts !== undefined && {
      networkPolicy: {
        defaultAction: 'deny',
        egress: hosts.map(target => ({ action: 'allow' as const, target })),
      },
    }),
    timeoutSeconds: expires,
  }
}

const usualExpiry = 1800

async function attachRemote(
  id: string,
  options: OpenSandboxOptions,
  environment: Environment,
): Promise<Sandbox> {
  const address = addressOf(options, environment)
  const { Sandbox: Client } = await importClient()
  try {
    const remote = await Client.connect({ sandboxId: id, connectionConfig: connection(address, options) })
    return await sandboxOn(remote, {}, options, environment)
  } catch (error) {
    if (statusOf(error) === 404) {
      throw new RathError(
        'sandbox-unavailable',
        `There is no sandbox ${show(id)} at ${address.domain} any more.`,
        {
          cause: error,
          data: { id },
        },
      )
    }
    throw serverError(error, 'finding a sandbox', address.domain)
  }
}

async function sandboxOn(
  remote: Remote,
  spec: OpenSandboxSpec,
  options: OpenSandboxOptions,
  environment: Environment,
  copy?: SharedCopy,
): Promise<Sandbox> {
  const { expires = usualExpiry, passEnv = [] } = spec
  const prepared = await runScript(remote, `mkdir -p "$1" && cd "$1" && pwd -P`, ['/workspace'])
  const root = new TextDecoder().decode(prepared.output).trim()
  if (prepared.exitCode !== 0) {
    throw new RathError(
      'sandbox-failed',
      `The sandbox has no usable /bin/sh, or no room for /workspace: ${prepared.errors.trim()}`,
    )
  }
  const files = parseStamps((await runScript(remote, stampScript, [root])).output)
  const passed = passEnv.flatMap(name => (environment[name] === undefined ? [] : [[name, environment[name]]]))
  const env: Record<string, string> = Object.fromEntries(passed)
  const open = (from: SharedCopy) => openRemote(spec, options, environment, { copy: from })
  return new OpenSandbox({ remote, root, capabilities, env, expires, files, copy, open })
}
