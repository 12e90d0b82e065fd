import { posix } from 'node:path'
import type Docker from 'dockerode'
import { isAtOrBelow } from '../../../base/platform.ts'
import { type Guard, recordError, recordFolder } from '../../host/guard.ts'
import { removeFolder } from '../../host/remove-folder.ts'
import { openAll, type SharedCopy } from '../../shared-copy.ts'
import { ChangeMarks, parseStamps, type Stamps, stampScript } from '../../shell/changes.ts'
import { commandScript, killScript, markName } from '../../shell/command-script.ts'
import { ShellFiles } from '../../shell/files.ts'
import type { ShellOptions, ShellResult } from '../../shell/shell.ts'
import { ShellSandbox } from '../../shell/shell-sandbox.ts'
import type { ExecHandle, ExecOptions, Sandbox, SandboxCapabilities, SandboxFiles } from '../../spec.ts'
import { addressOf } from './address.ts'
import { engineError, statusOf } from './engine.ts'
import { runExec, startExec } from './exec.ts'
import { commitImage } from './images.ts'

/** A folder of this machine that commands work in. */
export interface OpenFolder {
  readonly path: string
  readonly guard: Guard
  /** Made for this sandbox, to be seen in place of the record. One that was attached to has it elsewhere. */
  readonly record?: string
}

/** What a sandbox is made of. */
export interface DockerPlace {
  readonly docker: Docker
  readonly container: Docker.Container
  /** The workspace, as commands see it. */
  readonly root: string
  readonly capabilities: SandboxCapabilities
  /** The environment of commands, besides the image's. */
  readonly env: Readonly<Record<string, string>>
  readonly user: string | undefined
  readonly folder: OpenFolder | undefined
  /** The image of a fork, which goes with the last of them. */
  readonly image?: SharedCopy | undefined
  /** Opens another one like this from an image. */
  open(image: SharedCopy): Promise<Sandbox>
}

/** One container. The files of its workspace are part of it, unless they lie in a folder of this machine. */
export class DockerSandbox extends ShellSandbox implements Sandbox {
  readonly id: string
  readonly backend = 'docker'
  readonly cwd: string
  readonly capabilities: SandboxCapabilities
  readonly hostPath?: string
  readonly files: SandboxFiles
  readonly changes?: Sandbox['changes'] & {}
  readonly snapshot?: Sandbox['snapshot'] & {}
  readonly fork?: Sandbox['fork'] & {}
  readonly #place: DockerPlace
  readonly #marks = new ChangeMarks()

  constructor(place: DockerPlace) {
    super()
    this.#place = place
    this.id = place.container.id
    this.cwd = place.root
    this.capabilities = place.capabilities
    const files = new ShellFiles({ root: place.root, run: (...args) => this.#run(...args) })
    this.files = place.folder === undefined ? files : guardedFiles(files, place.root, place.folder.guard)
    if (place.folder !== undefined) this.hostPath = place.folder.path
    else {
      // A folder of this machine is no part of the container, so the container knows nothing of what changed there.
      this.changes = since => this.#changes(since)
      this.snapshot = async () => (await this.#commit('snapshot')).id
      this.fork = count => this.#fork(count)
    }
  }

  exec(command: string | readonly string[], options: ExecOptions = {}): ExecHandle {
    const { container, root, env, user, folder } = this.#place
    const noticed = folder?.guard.watch()
    return this.start(command, options, mark => ({
      root,
      ...(noticed && { lastWords: noticed }),
      start: async (request, output) => {
        const size = request.stdin === undefined ? '' : String(request.stdin.length)
        const args = [mark, root, request.cwd, size, '', 'own', '', ...request.argv]
        const all = { ...env, ...request.env, [markName]: mark }
        const pairs = Object.entries(all).map(([name, value]) => `${name}=${value}`)
        const argv = ['/bin/sh', '-c', commandScript, 'sh', ...args]
        return startExec(container, { argv, env: pairs, user, input: request.stdin }, output).catch(error => {
          throw engineError(error, 'starting a command')
        })
      },
      sweep: async pipe => {
        const argv = ['/bin/sh', '-c', killScript, 'sh', mark, pipe, 'own']
        await runExec(container, { argv, user: '0' })
      },
    }))
  }

  async expose(port: number): Promise<string> {
    this.check()
    return addressOf(await this.#place.container.inspect(), port)
  }

  protected async shut(): Promise<void> {
    await this.#place.container.remove({ force: true, v: true }).catch(error => {
      if (statusOf(error) !== 404) throw engineError(error, 'removing the container')
    })
  }

  protected async letGo(): Promise<void> {
    await this.#place.image?.release()
    if (this.#place.folder?.record !== undefined) await removeFolder(this.#place.folder.record)
  }

  protected get called(): string {
    return `The container ${this.id.slice(0, 12)}`
  }

  async #run(script: string, args: readonly string[], { input }: ShellOptions = {}): Promise<ShellResult> {
    this.check()
    const { container, user } = this.#place
    const argv = ['/bin/sh', '-c', script, 'sh', ...args]
    try {
      return await runExec(container, { argv, user, input })
    } catch (error) {
      this.check()
      throw engineError(error, 'running a script')
    }
  }

  async #changes(since?: string): Promise<{ readonly mark: string; readonly paths: readonly string[] }> {
    this.check()
    const { container, root } = this.#place
    const listed = ((await container.changes()) ?? []) as readonly { Path: string; Kind: number }[]
    const { output } = await this.#run(stampScript, [root], { isLong: true })
    const stamps = parseStamps(output)
    const now = new Map<string, string>()
    for (const { Path, Kind } of listed) {
      if (!Path.startsWith(`${root}/`)) continue
      const path = Path.slice(root.length + 1)
      const stamp = stamps.get(path)
      // Folders have no stamp; what is gone has none either.
      if (stamp !== undefined) now.set(path, stamp)
      else if (Kind === removed) now.set(path, 'removed')
    }
    return this.#marks.compare(now as Stamps, since)
  }

  async #commit(kind: 'snapshot' | 'fork'): Promise<SharedCopy> {
    this.check()
    return commitImage(this.#place.docker, this.#place.container, kind)
  }

  async #fork(count: number): Promise<readonly Sandbox[]> {
    return openAll(
      count,
      () => this.#commit('fork'),
      image => this.#place.open(image),
    )
  }
}

/** Says why a change is refused that the container's mounts refuse in any case. */
function guardedFiles(files: SandboxFiles, root: string, guard: Guard): SandboxFiles {
  const check = (path: string) => {
    const inside = posix.relative(root, posix.resolve(root, path))
    if (isAtOrBelow(inside, recordFolder)) throw recordError(path)
    guard.check(inside)
  }
  return {
    read: (path, range) => files.read(path, range),
    stat: path => files.stat(path),
    async list(path) {
      const isTop = posix.resolve(root, path) === root
      return (await files.list(path)).filter(({ name }) => !isTop || name !== recordFolder)
    },
    search: query => files.search(query),
    async write(path, data, options) {
      check(path)
      return files.write(path, data, options)
    },
    async mkdir(path) {
      if ((await files.stat(path)) === null) check(path)
      return files.mkdir(path)
    },
    async remove(path, options) {
      check(path)
      return files.remove(path, options)
    },
    async rename(from, to) {
      check(from)
      check(to)
      return files.rename(from, to)
    },
  }
}

/** The number of a removed path in the engine's list of changes. */
const removed = 2
