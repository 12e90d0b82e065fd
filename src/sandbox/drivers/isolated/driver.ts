import { rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { cancelledError } from '../../../base/abort.ts'
import { RathError } from '../../../base/errors.ts'
import { newId } from '../../../base/ids.ts'
import { checkCommand } from '../../host/check-command.ts'
import { HostCommand, type Launched } from '../../host/command.ts'
import { cleanEnvironment, type Environment } from '../../host/environment.ts'
import { beforeExit } from '../../host/exit.ts'
import { HostFiles } from '../../host/files.ts'
import { givenFolder, newFolder } from '../../host/folder.ts'
import { hostInterpreters } from '../../host/interpreters.ts'
import { removeFolder } from '../../host/remove-folder.ts'
import type {
  ExecHandle,
  ExecOptions,
  HostFolder,
  Sandbox,
  SandboxBackend,
  SandboxCapabilities,
  SandboxSpec,
  StartedProgram,
} from '../../spec.ts'
import { walls } from '../../walls.ts'
import { makeCgroup } from './cgroup.ts'
import { parseIsolatedSpec, usualLimits } from './isolated-spec.ts'
import { IsolatedPlace } from './place.ts'
import { findPrograms } from './programs.ts'
import { whyNot } from './why-not.ts'

export interface IsolatedOptions {
  /** What `passEnv` and the harmless names are taken from; the environment of this process by default. */
  readonly environment?: Environment
  /** Where the programs that make the walls are looked for; the folders of the system by default. */
  readonly programPath?: readonly string[]
}

/**
 * Commands in namespaces of their own on this machine, made by bubblewrap: they see one folder and the programs of the system, and nothing
 * else of it. Linux only. It refuses to open where a wall cannot be made.
 */
export function isolatedBackend(options: IsolatedOptions = {}): SandboxBackend {
  let known: SandboxCapabilities | undefined
  return Object.freeze<SandboxBackend>({
    name: 'isolated',
    get capabilities() {
      known ??= capabilitiesHere()
      return known
    },
    reachesOut: spec => typeof spec === 'object' && Boolean(spec.network),
    async probe() {
      try {
        await using _ = await openIsolated(undefined, undefined, options, this.capabilities)
        return { available: true }
      } catch (error) {
        return { available: false, reason: (error as Error).message }
      }
    },
    async open(spec, { signal } = {}) {
      if (signal?.aborted) throw cancelledError(signal)
      return openIsolated(undefined, spec, options, this.capabilities)
    },
    // Root takes another uid, and shows it the folder under an owner of its own.
    plainFolders: process.getuid?.() === 0,
    async openIn(folder, spec, { signal } = {}) {
      if (signal?.aborted) throw cancelledError(signal)
      return openIsolated(folder, spec, options, this.capabilities)
    },
  })
}

/** What differs between machines is only whether memory is counted for a sandbox as a whole: that needs a cgroup. */
function capabilitiesHere(): SandboxCapabilities {
  const cgroup = makeCgroup(usualLimits)
  cgroup?.abandon()
  return Object.freeze({
    isolation: 'namespace',
    enforced: Object.freeze({
      ...walls,
      network: true,
      memory: cgroup !== undefined,
      processes: true,
    }),
    stdin: true,
    streaming: true,
    binaryOutput: true,
  })
}

async function openIsolated(
  given: HostFolder | undefined,
  spec: SandboxSpec | undefined,
  options: IsolatedOptions,
  capabilities: SandboxCapabilities,
): Promise<Sandbox> {
  const parsed = parseIsolatedSpec(spec)
  const programs = findPrograms(options.programPath)
  if (typeof programs === 'string') throw new RathError('sandbox-unavailable', programs)
  const isPrivate = given === undefined && parsed.path === undefined
  const folder = given ?? {
    path: isPrivate ? await newFolder(tmpdir()) : await givenFolder(parsed.path as string),
  }
  try {
    const environment = cleanEnvironment(options.environment ?? process.env, parsed.passEnv ?? [], {})
    const place = await IsolatedPlace.make({
      folder,
      isGiven: given === undefined && !isPrivate,
      spec: parsed,
      programs,
      environment,
    })
    const sandbox = new IsolatedSandbox(place, folder.path, isPrivate, capabilities)
    return await tried(sandbox)
  } catch (error) {
    if (isPrivate) await removeFolder(folder.path)
    throw error
  }
}

/** A wall that cannot be made is found now, and not by the first command. */
async function tried(sandbox: Sandbox): Promise<Sandbox> {
  try {
    const { exitCode, stderr } = await sandbox.exec(['/bin/sh', '-c', ':']).result
    if (exitCode === 0) return sandbox
    throw new Error(new TextDecoder().decode(stderr))
  } catch (error) {
    await sandbox.close()
    throw new RathError('sandbox-unavailable', whyNot((error as Error).message, sandbox.cwd), {
      cause: error,
    })
  }
}

class IsolatedSandbox implements Sandbox {
  readonly id = newId()
  readonly backend = 'isolated'
  readonly cwd: string
  readonly hostPath: string
  readonly capabilities: SandboxCapabilities
  readonly files: HostFiles
  readonly interpreters = hostInterpreters
  readonly #place: IsolatedPlace
  readonly #isPrivate: boolean
  readonly #running = new Set<HostCommand>()
  readonly #programs = new Set<Launched>()
  readonly #exit: Disposable
  #closing: Promise<void> | undefined

  constructor(place: IsolatedPlace, hostPath: string, isPrivate: boolean, capabilities: SandboxCapabilities) {
    this.cwd = place.paths.inside
    this.hostPath = hostPath
    this.capabilities = capabilities
    this.#place = place
    this.#isPrivate = isPrivate
    this.files = new HostFiles(place.paths, () => this.#check(), place.identity.owner)
    this.#exit = beforeExit(() => this.#abandon())
  }

  exec(command: string | readonly string[], options: ExecOptions = {}): ExecHandle {
    const started = new HostCommand(command, options, {
      paths: this.#place.paths,
      check: () => this.#check(),
      launch: (argv, launch) => this.#place.launch(argv, launch),
    })
    this.#running.add(started)
    const forget = () => void this.#running.delete(started)
    started.result.then(forget, forget)
    return started
  }

  async startProgram(
    command: readonly string[],
    { env = {} }: { readonly env?: Readonly<Record<string, string>> } = {},
  ): Promise<StartedProgram> {
    this.#check()
    checkCommand(command, { env })
    const cwd = await this.#place.paths.resolve('.')
    this.#check()
    const launched = this.#place.start(command as [string, ...string[]], { cwd, env, hasInput: true })
    this.#programs.add(launched)
    launched.child.once('close', () => {
      this.#programs.delete(launched)
      // Nobody reads its last words, but what it made that was not to be there goes.
      launched.lastWords?.()
    })
    return { child: launched.child, kill: () => launched.kill() }
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
    const programs = [...this.#programs]
    const ends = programs.map(
      ({ child }) => new Promise<void>(resolve => child.once('close', () => resolve())),
    )
    for (const program of programs) program.kill()
    await Promise.allSettled([...running.map(command => command.result), ...ends])
    await this.#place.close()
    if (this.#isPrivate) await removeFolder(this.hostPath)
    this.#exit[Symbol.dispose]()
  }

  /** What is left to do when this process exits without having closed it. Commands die with this process by themselves. */
  #abandon(): void {
    for (const command of [...this.#running, ...this.#programs]) command.kill()
    this.#place.abandon()
    if (this.#isPrivate) rmSync(this.hostPath, { recursive: true, force: true })
  }

  #check(): void {
    if (this.#closing !== undefined) {
      throw new RathError('sandbox-closed', `The sandbox in ${this.cwd} is closed; open another one.`)
    }
  }
}
