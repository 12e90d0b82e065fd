import { show } from '../../../base/errors.ts'
import { isPlainObject, type Problem, refuse } from '../../../base/json.ts'
import { type GuardedPart, isParts } from '../../host/guard.ts'
import type { SandboxSpec } from '../../spec.ts'

/** What `session.to('docker', spec)` may say. A text is the `image`. */
export interface DockerSpec {
  /** What the container is made of; pulled when it is not there. It has `/bin/sh` and the usual tools, those of busybox at least. */
  readonly image?: string
  /** A name that `snapshot()` gave: the container starts with its files. In place of `image`. */
  readonly snapshot?: string
  /** A folder of this machine to work in; made if it is not there. Without one the workspace is part of the container and goes with it. */
  readonly path?: string
  /** Set for every command. The session records it: give secrets by name, with `passEnv`. */
  readonly env?: Readonly<Record<string, string>>
  /** Names whose values commands get from this process: `['GITHUB_TOKEN']`. */
  readonly passEnv?: readonly string[]
  /** `none`, the default, or `bridge`, with which commands reach whatever this machine reaches. */
  readonly network?: 'none' | 'bridge'
  /** Ports that `expose` makes reachable at 127.0.0.1; they need `network: 'bridge'`. */
  readonly ports?: readonly number[]
  readonly limits?: {
    /** Bytes; 2 GiB by default. */
    readonly memory?: number
    /** 512 by default. */
    readonly processes?: number
    /** As many as there are by default; may be a fraction. */
    readonly cpus?: number
  }
  /** Who commands run as: `1000`, `1000:1000`, or a name that the image knows; `0` by default, whatever the image says. */
  readonly user?: string
  /** Parts of `path` that are read-only otherwise: `git`, settings and hooks of repositories, and `code` that this process has loaded. */
  readonly writable?: readonly GuardedPart[]
}

const fields = [
  ...['image', 'snapshot', 'path', 'env', 'passEnv', 'network', 'ports', 'limits', 'user', 'writable'],
] satisfies readonly string[]

export function parseDockerSpec(spec: SandboxSpec | undefined, usualImage: string | undefined): DockerSpec {
  const given: unknown = typeof spec === 'string' ? { image: spec } : (spec ?? {})
  const problems: Problem[] = []
  const need = (fine: boolean, path: string, message: string) => {
    if (!fine) problems.push({ path, message })
  }
  need(isPlainObject(given), 'spec', `must be an image or an object, not ${show(spec)}`)
  const { image = usualImage, snapshot, path, user, ...rest } = isPlainObject(given) ? given : {}
  const {
    env = {},
    passEnv = [],
    network = 'none',
    ports = [],
    limits = {},
    writable = [],
    ...unknown
  } = rest
  for (const name of Object.keys(unknown)) {
    problems.push({ path: name, message: `is not known; there are ${fields.join(', ')}` })
  }
  const texts = { ...(snapshot === undefined ? { image } : { snapshot }), path, user }
  for (const [name, value] of Object.entries(texts)) {
    const isNeeded = name === 'image' || name === 'snapshot'
    const isFine = (value === undefined && !isNeeded) || (isText(value) && value !== '')
    need(isFine && !String(value).includes('\0'), name, `must be a text, not ${show(value)}`)
  }
  const isEnvironment = isPlainObject(env) && Object.values(env).every(isText)
  need(isEnvironment, 'env', `must be names with texts, not ${show(env)}`)
  need(isList(passEnv, isText), 'passEnv', `must be a list of names, not ${show(passEnv)}`)
  need(network === 'none' || network === 'bridge', 'network', `must be none or bridge, not ${show(network)}`)
  const isPort = (port: unknown) => Number.isInteger(port) && Number(port) > 0 && Number(port) < 65536
  need(isList(ports, isPort), 'ports', `must be a list of ports, not ${show(ports)}`)
  const isReachable = !Array.isArray(ports) || ports.length === 0 || network === 'bridge'
  need(isReachable, 'ports', "need network: 'bridge' to be reached")
  need(isParts(writable), 'writable', `must be a list of git and code, not ${show(writable)}`)
  need(isPlainObject(limits), 'limits', `must be an object, not ${show(limits)}`)
  for (const [name, value] of Object.entries(isPlainObject(limits) ? limits : {})) {
    const isKnown = ['memory', 'processes', 'cpus'].includes(name)
    need(
      isKnown && Number(value) > 0 && Number.isFinite(value),
      `limits.${name}`,
      `must be memory, processes or cpus with a number above 0, not ${show(value)}`,
    )
  }
  refuse('invalid-argument', 'The place cannot be opened: the spec of docker is wrong', problems)
  return { ...(image !== undefined && { image }), ...(given as object) } as DockerSpec
}

function isText(value: unknown): value is string {
  return typeof value === 'string'
}

function isList(value: unknown, isFine: (item: unknown) => boolean): boolean {
  return Array.isArray(value) && value.every(isFine)
}
