import { mkdtempSync, rmSync } from 'node:fs'
import { mkdir, realpath, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { cancelledError } from '../../../base/abort.ts'
import { RathError, show } from '../../../base/errors.ts'
import { newId } from '../../../base/ids.ts'
import type {
  ExecHandle,
  ExecOptions,
  Sandbox,
  SandboxBackend,
  SandboxCapabilities,
  SandboxSpec,
} from '../../spec.ts'
import { LocalCommand } from './command.ts'
import { cleanEnvironment, type Environment } from './environment.ts'
import { beforeExit } from './exit.ts'
import { LocalFiles } from './files.ts'
import { type LocalSpec, parseLocalSpec } from './local-spec.ts'
import { pathError, WorkspacePaths } from './paths.ts'
import { ProcessWindow } from './process-window.ts'
import { endTree, findsAll, killTree } from './processes.ts'
import { removeFolder } from './remove-folder.ts'

export interface LocalOptions {
  /** What `passEnv` and the harmless names are taken from; the environment of this process by default. */
  readonly environment?: Environment
  /** Where folders without a name of their own are made; the system's place for them by default. */
  readonly temporaryFolder?: string
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
  const reason = process.platform === 'win32' ? noWindows : undefined
  return Object.freeze<SandboxBackend>({
    name: 'local',
    capabilities,
    probe: async () => (reason === undefined ? { available: true } : { available: false, reason }),
    open: async (spec, { signal } = {}) => {
      if (reason !== undefined) throw new RathError('sandbox-unavailable', reason)
      if (signal?.aborted) throw cancelledError(signal)
      return openLocal(spec, options)
    },
  })
}

const noWindows =
  'local runs commands with /bin/sh and process groups, which Windows has not; run in WSL, or use a remote sandbox.'

async function openLocal(spec: SandboxSpec | undefined, options: LocalOptions): Promise<Sandbox> {
  const parsed = parseLocalSpec(spec)
  const { environment: host = process.env, temporaryFolder = tmpdir() } = options
  const environment = cleanEnvironment(host, parsed.passEnv ?? [], parsed.env ?? {})
  const isPrivate = parsed.path === undefined
  // The number of this process says whose leftovers they are.
  const folder = isPrivate
    ? mkdtempSync(join(temporaryFolder, `openrath-${process.pid}-`))
    : await givenFolder(parsed.path)
  return new LocalSandbox(await realpath(folder), environment, isPrivate)
}

async function givenFolder(path: NonNullable<LocalSpec['path']>): Promise<string> {
  const folder = resolve(path)
  try {
    await mkdir(folder, { recursive: true })
    if ((await stat(folder)).isDirectory()) return folder
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw pathError(error, path)
  }
  throw new RathError('path-kind', `${show(path)} is not a folder, and a sandbox works in one.`, {
    data: { path },
  })
}

class LocalSandbox implements Sandbox {
  readonly id = newId()
  readonly backend = 'local'
  readonly cwd: string
  readonly hostPath: string
  readonly capabilities = capabilities
  readonly files: LocalFiles
  /** The Node that runs this process: it is there, and it reads TypeScript. */
  readonly interpreters = Object.freeze({
    javascript: Object.freeze([process.execPath]),
    typescript: Object.freeze([process.execPath]),
  })
  readonly #paths: WorkspacePaths
  readonly #environment: Readonly<Record<string, string>>
  readonly #isPrivate: boolean
  readonly #running = new Set<LocalCommand>()
  readonly #since = new ProcessWindow()
  readonly #exit: Disposable
  #commands = 0
  #closing: Promise<void> | undefined

  constructor(root: string, environment: Readonly<Record<string, string>>, isPrivate: boolean) {
    this.cwd = root
    this.hostPath = root
    this.#environment = environment
    this.#isPrivate = isPrivate
    this.#paths = new WorkspacePaths(root)
    this.files = new LocalFiles(this.#paths, () => this.#check())
    this.#exit = beforeExit(() => this.#abandon())
  }

  exec(command: string | readonly string[], options: ExecOptions = {}): ExecHandle {
    const started = new LocalCommand(command, options, {
      paths: this.#paths,
      environment: this.#environment,
      mark: `${this.#mark}${this.#commands++};`,
      check: () => this.#check(),
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
    if (this.#isPrivate) await removeFolder(this.cwd)
    this.#exit[Symbol.dispose]()
  }

  /** What is left to do when this process exits without having closed it. */
  #abandon(): void {
    for (const command of this.#running) command.kill()
    if (this.#commands > 0) killTree({ mark: this.#mark, since: this.#since })
    if (this.#isPrivate) rmSync(this.cwd, { recursive: true, force: true })
  }

  /** The beginning of every command's mark. */
  get #mark(): string {
    return `${process.pid}.${this.id}.`
  }

  #check(): void {
    if (this.#closing !== undefined) {
      throw new RathError('sandbox-closed', `The sandbox in ${this.cwd} is closed; open another one.`)
    }
  }
}
