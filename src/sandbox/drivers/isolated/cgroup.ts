import { existsSync, mkdirSync, readdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { newId, timeOf } from '../../../base/ids.ts'
import { stateOf } from '../../../base/process.ts'
import { endsWell } from '../../../base/programs.ts'

/** A group of processes that the kernel counts together. */
export interface Cgroup {
  /** Files that a process writes its number into to belong to it. */
  readonly doors: readonly string[]
  /** Put before a command that is to belong to it. */
  readonly join: readonly string[]
  /** Variables that `join` needs. */
  readonly env: Readonly<Record<string, string>>
  /** Once its processes have ended. */
  remove(): Promise<void>
  /** The same at exit, when nothing can be awaited. */
  abandon(): void
}

export interface CgroupLimits {
  readonly memory: number
  readonly processes: number
}

/** What groups are made of; another one in tests. */
export interface CgroupMachine {
  readonly base: string
  /** The groups of this process, as in `/proc/self/cgroup`. */
  readonly own: string
  readonly uid: number
  /** Where the user's own systemd listens. */
  readonly runtimeFolder: string | undefined
  make(folder: string): void
  endsWell(program: string, args: readonly string[], env: Readonly<Record<string, string>>): boolean
}

/** Undefined where this user may make none that limits both. */
export function makeCgroup(
  { memory, processes }: CgroupLimits,
  machine: CgroupMachine = thisMachine(),
): Cgroup | undefined {
  for (const { folders, files, scope, env = {} } of places(machine)) {
    const name = `openrath-${process.pid}-${newId()}`
    const made: string[] = []
    for (const folder of folders) dropLeft(folder)
    try {
      for (const folder of folders) {
        machine.make(join(folder, name))
        made.push(join(folder, name))
      }
      set(made, files.memory, memory)
      set(made, files.processes, processes)
      // Memory that is swapped out is memory all the same. Not every kernel counts it.
      for (const file of files.swap)
        if (made.some(at => existsSync(join(at, file.name)))) set(made, file.name, file.value(memory))
      const doors = made.map(at => join(at, 'cgroup.procs'))
      const way = ['/bin/sh', '-c', joinAndRun, doors.join(' ')]
      if (scope) check(scope, way, env, machine)
      return {
        doors,
        join: [...(scope ?? []), ...way],
        env,
        remove: () => remove(made),
        abandon: () => abandon(made),
      }
    } catch {
      drop(made)
    }
  }
  return undefined
}

/** Scopes that have worked, by the folder of the user's runtime: trying one takes a moment. */
const worked = new Set<string>()

function check(
  [program = '', ...args]: readonly string[],
  way: readonly string[],
  env: Readonly<Record<string, string>>,
  { runtimeFolder = '', endsWell }: CgroupMachine,
): void {
  if (worked.has(runtimeFolder)) return
  if (!endsWell(program, [...args, ...way, '/bin/true'], env)) throw new Error('no scope can be made')
  worked.add(runtimeFolder)
}

const joinAndRun = 'for door in $0; do echo $$ > "$door" || exit 125; done; exec "$@"'

const thisMachine = (): CgroupMachine => ({
  base: '/sys/fs/cgroup',
  own: text('/proc/self/cgroup'),
  uid: process.getuid?.() ?? 0,
  runtimeFolder: process.env.XDG_RUNTIME_DIR,
  make: folder => void mkdirSync(folder),
  endsWell,
})

interface CgroupPlace {
  /** One for the unified hierarchy, one for each controller in the older layout. */
  readonly folders: readonly string[]
  readonly files: {
    readonly memory: string
    readonly processes: string
    readonly swap: readonly { readonly name: string; value(memory: number): number }[]
  }
  /** Comes first: a process of a login session is moved to the user's own part of the tree, within which it may move itself. */
  readonly scope?: readonly string[]
  readonly env?: Readonly<Record<string, string>>
}

const unified: CgroupPlace['files'] = {
  memory: 'memory.max',
  processes: 'pids.max',
  swap: [{ name: 'memory.swap.max', value: () => 0 }],
}
const older: CgroupPlace['files'] = {
  memory: 'memory.limit_in_bytes',
  processes: 'pids.max',
  swap: [{ name: 'memory.memsw.limit_in_bytes', value: memory => memory }],
}

/** Groups that a new one could be made in: the one this process is in, or the nearest above it that has the controllers. */
function* places({ base, own: groups, uid, runtimeFolder }: CgroupMachine): Generator<CgroupPlace> {
  const mine = new Map<string, string>()
  for (const line of groups.trim().split('\n')) {
    const [, controllers = '', path = '/'] = /^\d+:([^:]*):(.*)$/.exec(line) ?? []
    for (const controller of controllers.split(',')) mine.set(controller, path)
  }
  const own = mine.get('')
  if (own !== undefined) {
    for (let at = join(base, own); at.startsWith(base); at = dirname(at)) {
      const given = text(join(at, 'cgroup.subtree_control')).trim().split(' ')
      if (given.includes('memory') && given.includes('pids')) yield { folders: [at], files: unified }
    }
    const service = join(base, `user.slice/user-${uid}.slice/user@${uid}.service`)
    const given = text(join(service, 'cgroup.subtree_control')).trim().split(' ')
    if (uid !== 0 && runtimeFolder && given.includes('memory') && given.includes('pids')) {
      const scope = ['systemd-run', '--user', '--scope', '--quiet', '--collect', '--']
      yield { folders: [service], files: unified, scope, env: { XDG_RUNTIME_DIR: runtimeFolder } }
    }
  }
  const [memory, pids] = [mine.get('memory'), mine.get('pids')]
  if (memory !== undefined && pids !== undefined) {
    yield { folders: [join(base, 'memory', memory), join(base, 'pids', pids)], files: older }
  }
}

function set(folders: readonly string[], file: string, value: number): void {
  const folder = folders.find(at => existsSync(join(at, file)))
  if (folder === undefined) throw new Error(`no group has ${file}`)
  writeFileSync(join(folder, file), String(value))
}

/** The kernel may take a moment to count out the last process. */
async function remove(folders: readonly string[]): Promise<void> {
  for (let tries = 0; !drop(folders) && tries < 100; tries++) await pause(10)
}

function abandon(folders: readonly string[]): void {
  const clock = new Int32Array(new SharedArrayBuffer(4))
  for (let tries = 0; !drop(folders) && tries < 50; tries++) Atomics.wait(clock, 0, 0, 10)
}

function drop(folders: readonly string[]): boolean {
  let isGone = true
  for (const folder of folders) {
    try {
      rmdirSync(folder)
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') isGone = false
    }
  }
  return isGone
}

const looked = new Set<string>()
/** A group is made before its first process is in it. */
const surelyUsed = 60_000

/** Takes away what killed processes left, once for each folder. The kernel keeps a group that has processes. */
function dropLeft(folder: string): void {
  if (looked.has(folder)) return
  looked.add(folder)
  for (const name of namesIn(folder)) {
    const [, pid, id = ''] = /^openrath-(\d+)-(.+)$/.exec(name) ?? []
    const made = timeOf(id)
    if (made !== undefined && made < Date.now() - surelyUsed && stateOf(Number(pid)) === 'gone')
      drop([join(folder, name)])
  }
}

function namesIn(folder: string): readonly string[] {
  try {
    return readdirSync(folder)
  } catch {
    return []
  }
}

function text(path: string): string {
  try {
    return readFileSync(path, 'latin1')
  } catch {
    return ''
  }
}
