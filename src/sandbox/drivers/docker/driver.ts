import { chmod, mkdir, realpath } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { resolve } from 'node:path'
import type Docker from 'dockerode'
import { cancelledError } from '../../../base/abort.ts'
import { RathError, show } from '../../../base/errors.ts'
import { newId } from '../../../base/ids.ts'
import type { Environment } from '../../host/environment.ts'
import { newFolder } from '../../host/folder.ts'
import { Guard, makeRecordFolder } from '../../host/guard.ts'
import { removeFolder } from '../../host/remove-folder.ts'
import type { SharedCopy } from '../../shared-copy.ts'
import type { Sandbox, SandboxBackend, SandboxCapabilities } from '../../spec.ts'
import { walls } from '../../walls.ts'
import { createOptions, keptSpec, type MountedFolder } from './container.ts'
import { type DockerSpec, parseDockerSpec } from './docker-spec.ts'
import { connect, engineError, statusOf } from './engine.ts'
import { runExec } from './exec.ts'
import { pullImage } from './images.ts'
import { ownName, sandboxLabel, specLabel } from './owner.ts'
import { DockerSandbox, type OpenFolder } from './sandbox.ts'

export interface DockerOptions {
  /** For specs that name none. */
  readonly image?: string
  /** Where Docker or Podman listens; by default what DOCKER_HOST says, or the first usual place where a socket is. */
  readonly socket?: string
  /** What `passEnv` and DOCKER_HOST are taken from; the environment of this process by default. */
  readonly environment?: Environment
}

const capabilities: SandboxCapabilities = Object.freeze({
  isolation: 'container',
  enforced: Object.freeze({
    ...walls,
    // Only of a sandbox without one; each says so itself.
    network: false,
    memory: true,
    processes: true,
  }),
  stdin: true,
  streaming: true,
  binaryOutput: true,
})

/** Containers of Docker, or of Podman through its socket. Needs the package `dockerode`. */
export function dockerBackend(options: DockerOptions = {}): SandboxBackend {
  const { environment = process.env } = options
  const engine = () => connect(options.socket, environment)
  return Object.freeze<SandboxBackend>({
    name: 'docker',
    capabilities,
    async probe() {
      try {
        const docker = await engine()
        await docker.ping().catch(error => Promise.reject(engineError(error, 'answering')))
        return { available: true }
      } catch (error) {
        return { available: false, reason: (error as Error).message }
      }
    },
    async open(spec, { signal } = {}) {
      const parsed = parseDockerSpec(spec, options.image)
      if (signal?.aborted) throw cancelledError(signal)
      return openContainer(await engine(), parsed, environment, { signal })
    },
    async attach(id, { signal } = {}) {
      if (signal?.aborted) throw cancelledError(signal)
      return attachContainer(await engine(), id, environment)
    },
  })
}

interface OpenOptions {
  readonly signal?: AbortSignal | undefined
  readonly image?: SharedCopy
}

async function openContainer(
  docker: Docker,
  spec: DockerSpec,
  environment: Environment,
  { signal, image }: OpenOptions,
): Promise<Sandbox> {
  const hostPath = spec.path === undefined ? undefined : resolve(spec.path)
  if (hostPath !== undefined) await mkdir(hostPath, { recursive: true })
  const folder = hostPath === undefined ? undefined : await guardedFolder(await realpath(hostPath), spec)
  let container: Docker.Container | undefined
  try {
    const from = image?.id ?? spec.snapshot ?? (spec.image as string)
    const create = createOptions(spec, from, folder, newId())
    container = await docker.createContainer(create).catch(async error => {
      if (statusOf(error) !== 404 || spec.snapshot !== undefined || image !== undefined) throw error
      await pullImage(docker, from)
      return docker.createContainer(create)
    })
    if (signal?.aborted) throw cancelledError(signal)
    await container.start()
    if (signal?.aborted) throw cancelledError(signal)
    const sandbox = await sandboxOn(docker, container, spec, environment, { folder, image })
    image?.hold()
    return sandbox
  } catch (error) {
    await container?.remove({ force: true, v: true }).catch(() => {})
    if (folder !== undefined) await removeFolder(folder.record)
    if (statusOf(error) === 404) {
      const name = spec.snapshot ?? spec.image
      throw new RathError(
        'sandbox-unavailable',
        `There is no image ${show(name)} here, and it cannot be pulled: ${(error as Error).message}`,
        { cause: error, data: { image: name ?? '' } },
      )
    }
    throw engineError(error, 'opening a container')
  }
}

/** The folder with an empty one to be seen instead of its record, and what of it is read-only. */
async function guardedFolder(
  path: string,
  { writable = [] }: DockerSpec,
): Promise<OpenFolder & MountedFolder> {
  const guard = new Guard(path, writable)
  makeRecordFolder(path)
  const record = await newFolder(tmpdir())
  // Users of the container are others than here.
  await chmod(record, 0o755)
  return { path, guard, record, guarded: guard.mounts() }
}

async function attachContainer(docker: Docker, id: string, environment: Environment): Promise<Sandbox> {
  try {
    const container = docker.getContainer(id)
    const { Config, State, Id } = await container.inspect()
    if (Config.Labels[sandboxLabel] === undefined || !State.Running) {
      throw new RathError('sandbox-unavailable', `The container ${show(id)} has ended, or is none of ours.`)
    }
    const spec = JSON.parse(Config.Labels[specLabel] ?? '{}') as DockerSpec
    await container.rename({ name: ownName() })
    const path = spec.path === undefined ? undefined : await realpath(spec.path)
    const folder = path === undefined ? undefined : { path, guard: new Guard(path, spec.writable ?? []) }
    return await sandboxOn(docker, docker.getContainer(Id), spec, environment, { folder })
  } catch (error) {
    if (statusOf(error) === 404) {
      throw new RathError('sandbox-unavailable', `There is no container ${show(id)} any more.`, {
        cause: error,
        data: { id },
      })
    }
    throw engineError(error, 'finding a container')
  }
}

async function sandboxOn(
  docker: Docker,
  container: Docker.Container,
  spec: DockerSpec,
  environment: Environment,
  { folder, image }: { readonly folder?: OpenFolder | undefined; readonly image?: SharedCopy | undefined },
): Promise<Sandbox> {
  const { user, network = 'none', passEnv = [] } = spec
  const owner = folder === undefined ? (user ?? '') : ''
  const argv = ['/bin/sh', '-c', prepare, 'sh', workspace, owner]
  const { exitCode, output, errors } = await runExec(container, { argv, user: '0' })
  if (exitCode !== 0) {
    throw new RathError(
      'sandbox-failed',
      `The container has no usable /bin/sh, or no room for ${workspace}: ${errors.trim() || exitCode}`,
    )
  }
  const passed = passEnv.flatMap(name => (environment[name] === undefined ? [] : [[name, environment[name]]]))
  return new DockerSandbox({
    docker,
    container,
    root: new TextDecoder().decode(output).trim(),
    capabilities: { ...capabilities, enforced: { ...capabilities.enforced, network: network === 'none' } },
    env: { ...Object.fromEntries(passed), ...spec.env },
    user,
    folder,
    image,
    open: from => openContainer(docker, keptSpec(spec), environment, { image: from }),
  })
}

const workspace = '/workspace'

const prepare = `mkdir -p "$1" && { [ -z "$2" ] || chown "$2" "$1"; } && cd "$1" && pwd -P`
