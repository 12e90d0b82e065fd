import { isAbsolute } from 'node:path'
import { show } from '../../../base/errors.ts'
import { isPlainObject, type Problem, refuse } from '../../../base/json.ts'
import { type GuardedPart, isParts } from '../../host/guard.ts'
import type { SandboxSpec } from '../../spec.ts'
import { parseAllowed } from './allowed-hosts.ts'

/** What `session.to('isolated', spec)` may say. A text is the `path`. */
export interface IsolatedSpec {
  /** The folder to work in; made if it is not there. Without one it is a new folder that `close` removes. */
  readonly path?: string
  /** Set for every command. The session records it: give secrets by name, with `passEnv`. */
  readonly env?: Readonly<Record<string, string>>
  /** Names whose values commands get from this process besides the harmless ones: `['GITHUB_TOKEN']`. */
  readonly passEnv?: readonly string[]
  /** Hosts that commands may reach over HTTP and HTTPS; none by default, which is `false`. */
  readonly network?: false | { readonly allow: readonly string[] }
  readonly limits?: IsolatedLimits
  /** Files and folders of this machine that commands may read, besides the system's programs: `['/opt/jdk']`. */
  readonly read?: readonly string[]
  /**
   * Parts of the folder that are read-only otherwise, because they decide what runs outside the sandbox: `git`, the settings and hooks of
   * repositories, and `code` that this process has loaded from the folder.
   */
  readonly writable?: readonly GuardedPart[]
}

export interface IsolatedLimits {
  /** Bytes; 4 GB by default. Of all commands together where cgroups can be made, and of each process everywhere. */
  readonly memory?: number
  /** Processes and threads; 512 by default. Of all commands together where cgroups can be made, else of each command. */
  readonly processes?: number
  /** Bytes of the largest file that can be written; 2 GB by default. */
  readonly fileSize?: number
  /** Seconds that each process may compute; an hour by default. */
  readonly cpuSeconds?: number
  /**
   * Bytes that stay free on the disks of the workspace and of `/tmp`; 512 MB by default, and half of what is free where that is less. A command
   * that leaves less is ended.
   */
  readonly diskFree?: number
}

const gigabyte = 2 ** 30

export const usualLimits: Required<IsolatedLimits> = Object.freeze({
  memory: 4 * gigabyte,
  processes: 512,
  fileSize: 2 * gigabyte,
  cpuSeconds: 3600,
  diskFree: gigabyte / 2,
})

const fields: readonly string[] = [
  'path',
  'env',
  'passEnv',
  'network',
  'limits',
  'read',
  'writable',
] satisfies (keyof IsolatedSpec)[]

/** Less than this, and the walls themselves do not stand: bubblewrap and a shell need a few processes and some memory. */
const least: Required<IsolatedLimits> = {
  memory: 16 * 2 ** 20,
  processes: 8,
  fileSize: 0,
  cpuSeconds: 1,
  diskFree: 0,
}

export function parseIsolatedSpec(spec: SandboxSpec | undefined): IsolatedSpec {
  if (spec === undefined) return {}
  const given: unknown = typeof spec === 'string' ? { path: spec } : spec
  const problems: Problem[] = []
  const need = (fine: boolean, path: string, message: string) => {
    if (!fine) problems.push({ path, message })
  }
  need(isPlainObject(given), 'spec', `must be a path or an object, not ${show(spec)}`)
  const known = isPlainObject(given) ? given : {}
  const {
    path,
    env = {},
    passEnv = [],
    network = false,
    limits = {},
    read = [],
    writable = [],
    ...rest
  } = known
  for (const name of Object.keys(rest)) need(false, name, `is not known; there are ${fields.join(', ')}`)
  need(path === undefined || isPath(path), 'path', `must name a folder, not ${show(path)}`)
  need(
    isPlainObject(env) && Object.entries(env).every(([name, value]) => isVariable(name, value)),
    'env',
    `must be names with texts, not ${show(env)}`,
  )
  const isNames = Array.isArray(passEnv) && passEnv.every(name => typeof name === 'string')
  need(isNames, 'passEnv', `must be a list of names, not ${show(passEnv)}`)
  need(
    Array.isArray(read) && read.every(one => isPath(one) && isAbsolute(one) && one !== '/'),
    'read',
    `must be a list of absolute paths below /, not ${show(read)}`,
  )
  need(isParts(writable), 'writable', `must be a list of git and code, not ${show(writable)}`)
  checkNetwork(network, need)
  checkLimits(limits, need)
  refuse('invalid-argument', 'The place cannot be opened: the spec of isolated is wrong', problems)
  return given as IsolatedSpec
}

type Need = (fine: boolean, path: string, message: string) => void

function checkNetwork(network: unknown, need: Need): void {
  if (network === false) return
  const allow = isPlainObject(network) && Object.keys(network).length === 1 ? network.allow : undefined
  if (!Array.isArray(allow)) {
    need(false, 'network', `must be false or { allow: ['example.com'] }, not ${show(network)}`)
    return
  }
  for (const [i, entry] of allow.entries()) {
    const isFine = typeof entry === 'string' && parseAllowed(entry) !== undefined
    need(
      isFine,
      `network.allow[${i}]`,
      `must be a host such as example.com, *.example.com or 127.0.0.1:8080, not ${show(entry)}`,
    )
  }
}

function checkLimits(limits: unknown, need: Need): void {
  need(isPlainObject(limits), 'limits', `must be an object, not ${show(limits)}`)
  for (const [name, value] of Object.entries(isPlainObject(limits) ? limits : {})) {
    const floor = Object.hasOwn(least, name) ? least[name as keyof IsolatedLimits] : undefined
    if (floor === undefined) {
      need(false, `limits.${name}`, `is not known; there are ${Object.keys(least).join(', ')}`)
    } else {
      const isFine = Number.isSafeInteger(value) && (value as number) >= floor
      need(isFine, `limits.${name}`, `must be a whole number from ${floor} on, not ${show(value)}`)
    }
  }
}

function isPath(path: unknown): path is string {
  return typeof path === 'string' && path !== '' && !path.includes('\0')
}

function isVariable(name: string, value: unknown): boolean {
  return /^[^=\0]+$/.test(name) && typeof value === 'string' && !value.includes('\0')
}
