import { rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { resolve } from 'node:path'
import { cancelledError } from '../../../base/abort.ts'
import { RathError } from '../../../base/errors.ts'
import { newId } from '../../../base/ids.ts'
import { type Platform, platformOf } from '../../../base/platform.ts'
import { thisMark } from '../../../base/process.ts'
import { HostCommand } from '../../host/command.ts'
import { cleanEnvironment, type Environment, pathOutside } from '../../host/environment.ts'
import { beforeExit } from '../../host/exit.ts'
import { HostFiles } from '../../host/files.ts'
import { givenFolder, newFolder } from '../../host/folder.ts'
import { Guard, recordFolder } from '../../host/guard.ts'
import { hostInterpreters } from '../../host/interpreters.ts'
import { WorkspacePaths } from '../../host/paths.ts'
import { removeFolder } from '../../host/remove-folder.ts'
import type {
  ExecHandle,
  ExecOptions,
  HostFolder,
  Sandbox,
  SandboxBackend,
  SandboxCapabilities,
  SandboxSpec,
} from '../../spec.ts'
import { launchLocal } from './launch.ts'
import { endLeftBy } from './left-by.ts'
import { parseLocalSpec } from './local-spec.ts'
import { ProcessWindow } from './process-window.ts'
import { endTree, findsAll, killTree } from './processes.ts'

export interface LocalOptions {
  /** What `passEnv` and the harmless names are taken from; the environment of this process by default. */
  readonly environment?: Environment
  /** Where folders without a name of their own are made; the system's place for them by default. */
  readonly temporaryFolder?: string
  /** The system that it runs on; the one of this process by default. */
  readonly platform?: Platform
}

const capabilities: SandboxCapabilities = Object.freeze({
  isolation: 'none',
  enforced: Object.freeze({
    paths: true,
    environment: true,
    processTree: findsAll,
    fileRead: false,
    fileWrite: false,
    network: false,
    memory: false,
    processes: false,
  }),
  stdin: true,
  streaming: true,
  binaryOutput: true,
})

/**
 * Commands and files of this machine, in one folder. It keeps honest mistakes small: it is no wall against a command that means harm, which
 * can do whatever the user of this process can. POSIX only.
 */
export function localBackend(options: LocalOptions = {}): SandboxBackend {
  const reason = (options.platform ?? platformOf()).name === 'win32' ? noWindows : undefined
  const check = (signal: AbortSignal | undefined) => {
    if (reason !== undefined) throw new RathError('sandbox-unavailable', reason)
    if (signal?.aborted) throw cancelledError(signal)
  }
  return Object.freeze<SandboxBackend>({
    name: 'local',
    capabilities,
    probe: async () => (reason === undefined ? { available: true } : { available: false, reason }),
    open: async (spec, { signal } = {}) => {
      check(signal)
      return openLocal(undefined, spec, options)
    },
    openIn: async (folder, spec, { signal } = {}) => {
      check(signal)
      return openLocal(folder, spec, options)
    },
    endLeftBy,
  })
}

const systemPath = '/usr/local/bin:/usr/bin:/bin'

const noWindows =
  'local runs commands with /bin/sh and process groups, which Windows has not; run in WSL, or use a remote sandbox.'

async function openLocal(
  folder: HostFolder | undefined,
  spec: SandboxSpec | undefined,
  options: LocalOptions,
): Promise<Sandbox> {
  const { path, passEnv = [], env = {} } = parseLocalSpec(spec)
  const { environment: host = process.env, temporaryFolder = tmpdir() } = options
  const environment = cleanEnvironment(host, passEnv, env)
  if (folder !== undefined) {
    const { enter, inside } = folder
    // A path through another mount namespace is not to be made real: it would be one of this namespace.
    const root = inside === undefined ? await givenFolder(folder.path) : folder.path
    const origin = path === undefined ? root : resolve(path)
    const place = { root, inside: inside ?? root, origin, enter, environment }
    return new LocalSandbox({ ...place, isPrivate: false, isGiven: false })
  }
  const root = path === undefined ? await newFolder(temporaryFolder) : await givenFolder(path)
  return new LocalSandbox({
    root,
    inside: root,
    origin: root,
    enter: undefined,
    environment,
    isPrivate: path === undefined,
    isGiven: path !== undefined,
  })
}

interface LocalPlace {
  readonly root: string
  readonly inside: string
  /** The folder that a person handed over, of which this may be a branch. */
  readonly origin: string
  readonly enter: HostFolder['enter']
  readonly environment: Readonly<Record<string, string>>
  /** Made for it, and removed with it. */
  readonly isPrivate: boolean
  /** A person named it, and this process may have loaded code from it. */
  readonly isGiven: boolean
}

class LocalSandbox implements Sandbox {
  readonly id = newId()
  readonly backend = 'local'
  readonly cwd: string
  readonly hostPath: string
  readonly capabilities = capabilities
  readonly files: HostFiles
  readonly interpreters = hostInterpreters
  readonly #place: LocalPlace
  readonly #paths: WorkspacePaths
  readonly #guard: Guard
  readonly #running = new Set<HostCommand>()
  readonly #since = new ProcessWindow()
  readonly #exit: Disposable
  #commands = 0
  #closing: Promise<void> | undefined

  constructor(place: LocalPlace) {
    this.cwd = place.inside
    this.hostPath = place.root
    this.#place = place
    this.#guard = new Guard(place.root, ['git'], place.isGiven)
    this.#paths = new WorkspacePaths({ ...place, hidden: recordFolder, guard: this.#guard })
    this.files = new HostFiles(this.#paths, () => this.#check())
    this.#exit = beforeExit(() => this.#abandon())
  }

  exec(command: string | readonly string[], options: ExecOptions = {}): ExecHandle {
    const { environment, enter, origin } = this.#place
    warnOfCode(this.#guard, this.hostPath)
    const mark = `${this.#mark}${this.#commands++};`
    const started = new HostCommand(command, options, {
      paths: this.#paths,
      check: () => this.#check(),
      launch: (argv, { cwd, env, hasInput }) => {
        const seen = enter === undefined ? cwd : this.#paths.seen(cwd)
        const all = { ...environment, ...env }
        if (options.fixedPath)
          all.PATH = pathOutside(all.PATH ?? '', [this.hostPath, this.cwd, origin]) || systemPath
        return launchLocal(argv, { cwd: seen, env: all, hasInput }, { mark, enter })
      },
    })
    this.#running.add(started)
    const forget = () => void this.#running.delete(started)
    started.result.then(forget, forget)
    return started
  }

  close(): Promise<void> {
    this.#closing ??= this.#close()
    return this.#closing
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }

  async #close(): Promise<void> {
    const running = [...this.#running]
    for (const command of running) command.kill()
    await Promise.allSettled(running.map(command => command.result))
    if (this.#commands > 0) await endTree({ mark: this.#mark, since: this.#since })
    if (this.#place.isPrivate) await removeFolder(this.hostPath)
    this.#exit[Symbol.dispose]()
  }

  /** What is left to do when this process exits without having closed it. */
  #abandon(): void {
    for (const command of this.#running) command.kill()
    if (this.#commands > 0) killTree({ mark: this.#mark, since: this.#since })
    if (this.#place.isPrivate) rmSync(this.hostPath, { recursive: true, force: true })
  }

  /** The beginning of every command's mark. */
  get #mark(): string {
    return `${thisMark()}.${this.id}.`
  }

  #check(): void {
    if (this.#closing !== undefined) {
      throw new RathError('sandbox-closed', `The sandbox in ${this.cwd} is closed; open another one.`)
    }
  }
}

let isWarned = false

/** Once: what this backend cannot keep commands from. */
function warnOfCode(guard: Guard, folder: string): void {
  if (isWarned || guard.code.length === 0) return
  isWarned = true
  const paths = guard.code.map(({ path }) => path)
  const shown =
    paths.length > 5 ? `${paths.slice(0, 5).join(', ')} and ${paths.length - 5} more` : paths.join(', ')
  process.emitWarning(
    `Commands in the sandbox local can rewrite code that this process has loaded from ${folder}: ${shown}. ` +
      'Use isolated or docker, which keep it read-only, for commands that you do not trust.',
    { type: 'OpenRathWarning', code: 'OPENRATH_CODE_WRITABLE' },
  )
}
