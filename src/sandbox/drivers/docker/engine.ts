import { existsSync } from 'node:fs'
import { join } from 'node:path'
import type Docker from 'dockerode'
import { RathError, show } from '../../../base/errors.ts'
import type { Environment } from '../../host/environment.ts'

/** Connects to Docker, or to Podman, which speaks the same. Nothing is sent yet. */
export async function connect(socket: string | undefined, environment: Environment): Promise<Docker> {
  const Engine = await importDockerode()
  const found = socket ?? socketOf(environment)
  if (found !== undefined) return new Engine({ socketPath: found })
  // Another address than a socket, with its certificates, is read from the environment by dockerode.
  if (environment.DOCKER_HOST !== undefined) return new Engine()
  throw new RathError('sandbox-unavailable', `There is neither Docker nor Podman: ${nothing(environment)}`)
}

function socketOf(environment: Environment): string | undefined {
  const { DOCKER_HOST } = environment
  if (DOCKER_HOST !== undefined) return /^unix:\/\/(.+)$/.exec(DOCKER_HOST)?.[1]
  return placesOf(environment).find(path => existsSync(path))
}

function placesOf({ XDG_RUNTIME_DIR }: Environment): string[] {
  const own = XDG_RUNTIME_DIR === undefined ? [] : [join(XDG_RUNTIME_DIR, 'podman/podman.sock')]
  return ['/var/run/docker.sock', ...own, '/run/podman/podman.sock']
}

function nothing(environment: Environment): string {
  return (
    `DOCKER_HOST is not set, and none of ${placesOf(environment).join(', ')} is there. ` +
    'Start Docker, or Podman with `podman system service --time=0`.'
  )
}

async function importDockerode(): Promise<typeof Docker> {
  try {
    return (await import('dockerode')).default
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code !== 'ERR_MODULE_NOT_FOUND') throw cause
    throw new RathError(
      'missing-package',
      'The sandbox docker needs the package dockerode, which is not installed: run `npm install dockerode`.',
      { cause, data: { package: 'dockerode' } },
    )
  }
}

/** The status that the engine answered with; undefined when it did not answer. */
export function statusOf(error: unknown): number | undefined {
  const { statusCode } = error as { statusCode?: unknown }
  return typeof statusCode === 'number' ? statusCode : undefined
}

/** What the engine said, as an error of ours. */
export function engineError(error: unknown, doing: string): RathError {
  if (error instanceof RathError) return error
  const { code, message, address } = error as NodeJS.ErrnoException & { address?: string }
  if (code === 'ENOENT' || code === 'ECONNREFUSED' || code === 'EACCES') {
    return new RathError(
      'sandbox-unavailable',
      `Docker does not answer at ${show(address)} (${code}). Start it, or let this user use its socket.`,
      { cause: error, data: { code } },
    )
  }
  const status = statusOf(error)
  const options = { cause: error, ...(status !== undefined && { data: { status } }) }
  return new RathError('sandbox-failed', `Docker failed while ${doing}: ${message}`, options)
}
