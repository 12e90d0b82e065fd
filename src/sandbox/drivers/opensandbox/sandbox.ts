import type { Sandbox as Remote } from '@alibaba-group/opensandbox'
import type { RathError } from '../../../base/errors.ts'
import { openAll, type SharedCopy } from '../../shared-copy.ts'
import { ChangeMarks, parseStamps, type Stamps, stampScript } from '../../shell/changes.ts'
import { commandScript, killScript, markName } from '../../shell/command-script.ts'
import { ShellFiles } from '../../shell/files.ts'
import type { ShellOptions, ShellResult } from '../../shell/shell.ts'
import { ShellSandbox } from '../../shell/shell-sandbox.ts'
import type { ExecHandle, ExecOptions, Sandbox, SandboxCapabilities, SandboxFiles } from '../../spec.ts'
import { serverError, statusOf } from './client.ts'
import { runScript, upload } from './script.ts'
import { takeSnapshot } from './snapshots.ts'
import { startStream } from './stream.ts'

/** What a sandbox is made of. */
export interface OpenSandboxPlace {
  readonly remote: Remote
  readonly root: string
  readonly capabilities: SandboxCapabilities
  /** The environment of commands, besides the sandbox's. */
  readonly env: Readonly<Record<string, string>>
  /** Seconds until the server ends it, unless it hears from us. */
  readonly expires: number
  /** What was there when it was opened. */
  readonly files: Stamps
  readonly copy?: SharedCopy | undefined
  /** Opens another one like this from a snapshot. */
  open(copy: SharedCopy): Promise<Sandbox>
}

/** One sandbox of a server. The server ends it when this process has not been heard of for a while. */
export class OpenSandbox extends ShellSandbox implements Sandbox {
  readonly id: string
  readonly backend = 'opensandbox'
  readonly cwd: string
  readonly capabilities: SandboxCapabilities
  readonly files: SandboxFiles
  readonly #place: OpenSandboxPlace
  readonly #marks: ChangeMarks
  readonly #renewal: NodeJS.Timeout

  constructor(place: OpenSandboxPlace) {
    super()
    this.#place = place
    this.id = place.remote.id
    this.cwd = place.root
    this.capabilities = place.capabilities
    this.files = new ShellFiles({ root: place.root, run: (...args) => this.#run(...args) })
    this.#marks = new ChangeMarks(place.files)
    // A renewal that fails is followed by another before the time is over.
    const renew = () => void place.remote.renew(place.expires).catch(() => {})
    this.#renewal = setInterval(renew, (place.expires * 1000) / 4)
    this.#renewal.unref()
  }

  exec(command: string | readonly string[], options: ExecOptions = {}): ExecHandle {
    const { remote, root, env } = this.#place
    return this.start(command, options, mark => ({
      root,
      start: async ({ argv, cwd, env: own, stdin }, output) => {
        try {
          const file = stdin === undefined ? '' : `/tmp/.openrath-${mark}in`
          if (stdin !== undefined) await upload(remote, file, stdin)
          const words = ['/bin/sh', '-c', commandScript, 'sh', mark, root, cwd, '', file, '', 'ends', ...argv]
          const all = { ...env, ...own, [markName]: mark }
          return await startStream(remote, { argv: words, env: all, endMark: mark }, output)
        } catch (error) {
          throw this.#error(error, 'starting a command')
        }
      },
      sweep: async pipe => {
        const argv = ['/bin/sh', '-c', killScript, 'sh', mark, pipe, '']
        await (await startStream(remote, { argv }, () => true)).ended
      },
    }))
  }

  async changes(since?: string): Promise<{ readonly mark: string; readonly paths: readonly string[] }> {
    const { output } = await this.#run(stampScript, [this.cwd], { isLong: true })
    return this.#marks.compare(parseStamps(output), since)
  }

  async snapshot(): Promise<string> {
    return (await this.#copy()).id
  }

  async fork(count: number): Promise<readonly Sandbox[]> {
    return openAll(
      count,
      () => this.#copy(),
      copy => this.#place.open(copy),
    )
  }

  async expose(port: number): Promise<string> {
    this.check()
    try {
      return await this.#place.remote.getEndpointUrl(port)
    } catch (error) {
      throw this.#error(error, `exposing port ${port}`)
    }
  }

  protected async shut(): Promise<void> {
    clearInterval(this.#renewal)
    await this.#place.remote.kill().catch(error => {
      if (statusOf(error) !== 404) throw this.#error(error, 'closing the sandbox')
    })
  }

  protected async letGo(): Promise<void> {
    await this.#place.copy?.release()
    await this.#place.remote.close()
  }

  protected get called(): string {
    return `The sandbox ${this.id}`
  }

  async #run(script: string, args: readonly string[], options: ShellOptions = {}): Promise<ShellResult> {
    this.check()
    try {
      return await runScript(this.#place.remote, script, args, options)
    } catch (error) {
      this.check()
      throw this.#error(error, 'running a script')
    }
  }

  async #copy(): Promise<SharedCopy> {
    this.check()
    try {
      return await takeSnapshot(this.#place.remote)
    } catch (error) {
      throw this.#error(error, 'taking a snapshot')
    }
  }

  #error(error: unknown, doing: string): RathError {
    return serverError(error, doing, this.#place.remote.connectionConfig.domain)
  }
}
