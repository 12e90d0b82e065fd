import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { closeSync, cpSync, lstatSync, mkdirSync, openSync, readlinkSync, rmSync } from 'node:fs'
import { join } from 'node:path'

/** Why the stand-in cannot run here; undefined when it can. */
export function boxProblem(): string | undefined {
  const { status, error, stderr } = spawnSync('bwrap', [...system(), '--dev', '/dev', 'true'], {
    encoding: 'utf8',
  })
  if (status === 0) return undefined
  return `the stand-in gives each sandbox its own /workspace with bwrap: ${error?.message ?? stderr.trim()}`
}

/** One sandbox of the stand-in: a folder that is `/workspace` and `/tmp` for real processes of this machine. */
export class Box {
  readonly id: string = randomUUID()
  readonly token: string = randomUUID()
  readonly folder: string
  readonly createdAt: string = new Date().toISOString()
  expiresAt: string | undefined
  readonly running: Map<string, ChildProcess> = new Map()
  readonly env: Readonly<Record<string, string>>
  /** Aborted when it is removed, which ends its streams. */
  readonly gone: AbortController = new AbortController()

  readonly #namespace: UserNamespace | undefined

  /** A copy of another folder, or empty. */
  constructor(
    base: string,
    env: Readonly<Record<string, string>>,
    options: { readonly from?: string | undefined; readonly namespace?: UserNamespace | undefined },
  ) {
    const { from, namespace } = options
    this.folder = join(base, this.id)
    this.env = env
    this.#namespace = namespace
    for (const name of ['workspace', 'tmp']) mkdirSync(join(this.folder, name), { recursive: true })
    if (from !== undefined) copyTree(from, this.folder)
  }

  /** Where a path of the sandbox lies on this machine; undefined when it is none that it has of its own. */
  hostPath(path: string): string | undefined {
    return /^\/(workspace|tmp)(\/|$)/.test(path) ? join(this.folder, path) : undefined
  }

  /** As execd runs it: with the shell, in a process group of its own. */
  start(command: string, cwd: string, envs: Readonly<Record<string, string>>): ChildProcess {
    const own = { PATH: '/usr/local/bin:/usr/bin:/bin', HOME: '/tmp', ...this.env, ...envs }
    const variables = Object.entries(own).flatMap(([name, value]) => ['--setenv', name, value])
    const places = ['workspace', 'tmp'].flatMap(name => ['--bind', join(this.folder, name), `/${name}`])
    const args = [...system(), '--dev', '/dev', ...places, '--clearenv', ...variables, '--chdir', cwd]
    const run = ['/bin/sh', '-c', command]
    const namespace = this.#namespace
    if (namespace === undefined) {
      return spawn('bwrap', [...args, ...run], { detached: true, stdio: ['ignore', 'pipe', 'pipe'] })
    }
    const closed = ['/bin/sh', '-c', 'exec 3<&-; exec "$@"', 'sh', ...run]
    return spawn('bwrap', ['--userns', '3', ...args, ...closed], {
      detached: true,
      stdio: ['ignore', 'pipe', 'pipe', namespace.fd],
    })
  }

  remove(): void {
    this.gone.abort()
    for (const { pid } of this.running.values()) killGroup(pid, 'SIGKILL')
    rmSync(this.folder, { recursive: true, force: true })
  }
}

/** A user namespace that commands of an ordinary user share. */
export interface UserNamespace extends Disposable {
  readonly fd: number
}

/**
 * For an ordinary user, bwrap makes a user namespace for each command, and processes of one may not look at those of another. Those of a
 * container can: its commands share one. Root needs none.
 */
export async function openUserNamespace(): Promise<UserNamespace | undefined> {
  if (process.getuid?.() === 0) return undefined
  const keeper = spawn('unshare', ['--user', '--map-current-user', 'cat'], {
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  keeper.stdin.write('ready')
  await once(keeper.stdout, 'data')
  const fd = openSync(`/proc/${keeper.pid}/ns/user`, 'r')
  return {
    fd,
    [Symbol.dispose]() {
      closeSync(fd)
      keeper.stdin.end()
    },
  }
}

export function copyTree(from: string, to: string): void {
  cpSync(from, to, { recursive: true, verbatimSymlinks: true, preserveTimestamps: true })
}

export function killGroup(pid: number | undefined, signal: NodeJS.Signals): void {
  try {
    if (pid !== undefined) process.kill(-pid, signal)
  } catch {
    // It has ended.
  }
}

function system(): string[] {
  const top = ['/bin', '/sbin', '/lib', '/lib64'].flatMap(path => {
    const found = lstatSync(path, { throwIfNoEntry: false })
    if (found === undefined) return []
    return found.isSymbolicLink() ? ['--symlink', readlinkSync(path), path] : ['--ro-bind', path, path]
  })
  return ['--ro-bind', '/usr', '/usr', '--ro-bind', '/etc', '/etc', '--bind', '/proc', '/proc', ...top]
}
