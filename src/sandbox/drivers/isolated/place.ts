import type { ChildProcess } from 'node:child_process'
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  readdirSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { RathError, show } from '../../../base/errors.ts'
import type { Launched, LaunchOptions } from '../../host/command.ts'
import { newFolder } from '../../host/folder.ts'
import { Guard, makeRecordFolder, recordFolder } from '../../host/guard.ts'
import { WorkspacePaths } from '../../host/paths.ts'
import { removeFolder } from '../../host/remove-folder.ts'
import type { HostFolder } from '../../spec.ts'
import { type Cgroup, makeCgroup } from './cgroup.ts'
import { endWhenFull } from './disk-watch.ts'
import { forwarder, proxyEnvironment } from './forwarder.ts'
import { become, type Identity, identityIn } from './identity.ts'
import { type IsolatedLimits, type IsolatedSpec, usualLimits } from './isolated-spec.ts'
import { launchIsolated } from './launch.ts'
import { limitOptions } from './limits.ts'
import { MemoryWatch, type WatchedCommand } from './memory-watch.ts'
import { type Programs, systemPath } from './programs.ts'
import { type HostProxy, startProxy } from './proxy.ts'
import { type Machine, machineOf, seccompFilter } from './seccomp.ts'
import type { Staged } from './stage.ts'
import { Supervisors } from './supervisor.ts'
import { etcOfHost, etcStubs, insideHome, type Walls, wallOptions } from './walls.ts'

export interface IsolatedPlaceOptions {
  readonly folder: HostFolder
  /** The folder is the one that a person named, from which this process may have loaded code. */
  readonly isGiven: boolean
  readonly spec: IsolatedSpec
  readonly programs: Programs
  readonly environment: Readonly<Record<string, string>>
}

/** All that the commands of one sandbox share: what they see, who they are, what they may use. */
export class IsolatedPlace {
  readonly paths: WorkspacePaths
  readonly identity: Identity
  readonly #options: IsolatedPlaceOptions
  readonly #limits: Required<IsolatedLimits>
  readonly #machine: Machine
  readonly #filter: Uint8Array
  readonly #guard: Guard
  readonly #own: string
  readonly #staged: readonly Staged[]
  readonly #cgroup: Cgroup | undefined
  /** Where no cgroup counts memory. */
  readonly #memory: MemoryWatch | undefined
  readonly #proxy: HostProxy | undefined
  readonly #supervisors: Supervisors

  /** One that fails leaves nothing behind. */
  static async make(options: IsolatedPlaceOptions): Promise<IsolatedPlace> {
    const own = await newFolder(tmpdir())
    let cgroup: Cgroup | undefined
    try {
      const { folder, spec } = options
      checkFolder(folder.inside ?? folder.path, own)
      const limits = { ...usualLimits, ...spec.limits }
      const identity = identityIn(folder)
      cgroup = makeCgroup(limits)
      checkIdentity(identity, cgroup, folder)
      furnish(own, identity)
      makeRecordFolder(folder.path)
      const proxy = spec.network ? await openProxy(own, identity, spec.network.allow) : undefined
      return new IsolatedPlace(options, { own, limits, identity, cgroup, proxy })
    } catch (error) {
      await cgroup?.remove()
      await removeFolder(own)
      throw error
    }
  }

  private constructor(
    options: IsolatedPlaceOptions,
    made: {
      readonly own: string
      readonly limits: Required<IsolatedLimits>
      readonly identity: Identity
      readonly cgroup: Cgroup | undefined
      readonly proxy: HostProxy | undefined
    },
  ) {
    const { folder } = options
    this.#options = options
    this.#own = made.own
    this.#limits = made.limits
    this.#cgroup = made.cgroup
    this.#proxy = made.proxy
    this.#machine = machineOf(process.arch) as Machine
    this.#memory = made.cgroup ? undefined : new MemoryWatch(made.limits.memory)
    this.#filter = seccompFilter(this.#machine, { hiddenMemory: made.cgroup !== undefined })
    this.identity = made.identity
    this.#guard = new Guard(folder.path, options.spec.writable ?? [], options.isGiven)
    this.paths = new WorkspacePaths({
      root: folder.path,
      inside: folder.inside ?? folder.path,
      hidden: recordFolder,
      guard: this.#guard,
    })
    this.#staged = made.identity.kind === 'spare' ? this.#stage() : []
    const filter = join(made.own, 'filter')
    writeFileSync(filter, this.#filter)
    this.#supervisors = new Supervisors({
      before: this.#before(),
      env: made.cgroup?.env ?? {},
      bwrap: options.programs.bwrap,
      filter,
      staged: this.#staged.map(({ source }) => source),
      pipes: name => {
        const at = join(made.own, name)
        mkdirSync(at, { mode: 0o700 })
        give(made.identity.user, at)
        return at
      },
    })
  }

  /** By a supervisor that is free, or one more. */
  async launch(
    argv: readonly [string, ...string[]],
    { cwd, env, hasInput, signal }: LaunchOptions,
  ): Promise<Launched> {
    let end = () => ''
    const command = () => {
      const options = wallOptions(this.#walls(cwd, env))
      end = this.#guard.watch()
      return { argv, hasInput, options, inside: this.#inside() }
    }
    const launched = await this.#supervisors.launch(command, signal)
    return this.#watched(launched, end)
  }

  /** As a child of this process, for a program that stays. */
  start(
    argv: readonly [string, ...string[]],
    { cwd, env, hasInput }: LaunchOptions,
  ): Launched & { readonly child: ChildProcess } {
    const options = wallOptions(this.#walls(cwd, env))
    const end = this.#guard.watch()
    const launched = launchIsolated(argv, hasInput, {
      before: this.#before(),
      env: this.#cgroup?.env ?? {},
      bwrap: this.#options.programs.bwrap,
      options,
      filter: this.#filter,
      inside: this.#inside(),
    })
    return { ...this.#watched(launched, end), child: launched.child }
  }

  #before(): string[] {
    const { programs, folder } = this.#options
    return [
      ...(this.#cgroup?.join ?? []),
      ...(folder.enter ?? []),
      ...become(this.identity, programs, this.#machine, this.#staged),
    ]
  }

  #inside(): string[] {
    const limits = [this.#options.programs.prlimit, ...limitOptions(this.#limits), '--']
    return this.#proxy === undefined ? limits : [process.execPath, '-e', forwarder, '--', ...limits]
  }

  /** Its last words say what it tried that was kept from the workspace: they are part of its errors, and so of the record. */
  #watched(launched: WatchedCommand, end: () => string): Launched {
    const { folder } = this.#options
    const watched = this.#memory?.watch(launched) ?? launched
    const ended = endWhenFull(watched, [folder.path, this.#own], this.#limits.diskFree)
    const record = join(this.#own, 'record')
    return { ...ended, lastWords: () => (ended.lastWords?.() ?? '') + emptied(record) + end() }
  }

  async close(): Promise<void> {
    await this.#supervisors.close()
    await this.#proxy?.[Symbol.asyncDispose]()
    await this.#cgroup?.remove()
    await removeFolder(this.#own)
  }

  abandon(): void {
    this.#supervisors.kill()
    this.#cgroup?.abandon()
    rmSync(this.#own, { recursive: true, force: true })
  }

  #walls(cwd: string, env: Readonly<Record<string, string>>): Walls {
    const { folder, spec, environment } = this.#options
    const seen = (source: string) => this.#staged.find(one => one.source === source)?.at ?? source
    return {
      workspace: seen(folder.inside ?? folder.path),
      temporary: join(this.#own, 'tmp'),
      etc: join(this.#own, 'etc'),
      isEtcWhole: this.#staged.length > 0,
      node: seen(process.execPath),
      proxy: this.#proxy && join(this.#own, 'proxy'),
      read: (spec.read ?? []).map(at => ({ source: seen(at), at })),
      inside: this.paths.inside,
      record: { source: join(this.#own, 'record'), at: join(this.paths.inside, recordFolder) },
      guarded: this.#guard.mounts(),
      cwd: this.paths.seen(cwd),
      env: { ...environment, ...(this.#proxy && proxyEnvironment), ...usual, ...spec.env, ...env },
      sharedMemory: Math.ceil(this.#limits.memory / 2),
    }
  }

  /**
   * Places to mount what the spare user may not reach by its own path, as in a home folder, and the parts of `/etc`, which are one mount for bubblewrap
   * then and not one each.
   */
  #stage(): Staged[] {
    const { folder, spec } = this.#options
    const sources = [folder.path, process.execPath, ...(spec.read ?? [])]
    const staged = sources.map((source, i) => ({
      source,
      at: join(this.#own, `stage-${i}`),
      isOwned: i === 0,
    }))
    const etc = etcOfHost
      .map(name => ({ source: `/etc/${name}`, at: join(this.#own, 'etc', name), isOwned: false }))
      .filter(({ source }) => existsSync(source))
    for (const { source, at } of [...staged, ...etc]) {
      mkdirSync(dirname(at), { recursive: true })
      if (statSync(source).isDirectory()) mkdirSync(at)
      else writeFileSync(at, '')
    }
    return [...staged, ...etc]
  }
}

const usual: Readonly<Record<string, string>> = {
  PATH: systemPath.join(':'),
  HOME: insideHome,
  TMPDIR: '/tmp',
  USER: 'agent',
  SHELL: '/bin/sh',
}

const system = ['/usr', '/etc', '/bin', '/sbin', '/lib', '/lib64', '/proc', '/dev', '/sys', '/run', '/boot']

function checkFolder(path: string, own: string): void {
  const isSystem = path === '/' || system.some(at => path === at || path.startsWith(`${at}/`))
  if (!isSystem && !own.startsWith(`${path}/`)) return
  throw new RathError(
    'invalid-argument',
    `${show(path)} is part of the system or holds its temporary files, and commands could change it; give a folder of a project.`,
    { data: { path } },
  )
}

function checkIdentity({ kind, user }: Identity, cgroup: Cgroup | undefined, { path }: HostFolder): void {
  if (kind !== 'owner' || user?.uid !== 0 || cgroup !== undefined) return
  throw new RathError(
    'sandbox-unavailable',
    `${show(path)} belongs to root in a mount of its own, where only a cgroup limits processes, and none can be made here. ` +
      'Run as another user, or give the folder to one with chown -R.',
  )
}

/** What lies in the folder that commands see instead of the record goes with the command that wrote it. */
function emptied(record: string): string {
  const names = readdirSync(record)
  if (names.length === 0) return ''
  for (const name of names) rmSync(join(record, name), { recursive: true, force: true })
  return `openrath: the command wrote into ${recordFolder}, which is not part of the workspace; removed: ${names.sort().join(', ')}\n`
}

/** Makes what commands get for themselves. Others may go through the folder, and see nothing in it. */
function furnish(own: string, { user }: Identity): void {
  if (user) chmodSync(own, 0o711)
  mkdirSync(join(own, 'etc'))
  for (const [name, text] of Object.entries(etcStubs)) writeFileSync(join(own, 'etc', name), text)
  const folders = ['tmp', 'tmp/home', 'record'].map(name => join(own, name))
  for (const folder of folders) mkdirSync(folder, { mode: 0o700 })
  give(user, ...folders)
}

async function openProxy(own: string, { user }: Identity, allow: readonly string[]): Promise<HostProxy> {
  const folder = join(own, 'proxy')
  mkdirSync(folder, { mode: 0o700 })
  const proxy = await startProxy(join(folder, 'proxy.sock'), allow)
  give(user, folder, proxy.path)
  return proxy
}

function give(user: Identity['user'], ...paths: readonly string[]): void {
  if (user) for (const path of paths) chownSync(path, user.uid, user.gid)
}
