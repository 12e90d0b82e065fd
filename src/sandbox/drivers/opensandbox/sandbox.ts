import type { Sandbox as Remote } from '@alibaba-group/opensandbox'
import { RathError } from '../../../base/errors.ts'
import { newId } from '../../../base/ids.ts'
import { openAll, type SharedCopy } from '../../shared-copy.ts'
import { ChangeMarks, parseStamps, type Stamps, stampScript } from '../../shell/changes.ts'
import { ShellCommand } from '../../shell/command.ts'
import { commandScript, killScript, markName } from '../../shell/command-script.ts'
import { ShellFiles } from '../../shell/files.ts'
import type { ShellOptions, ShellResult } from '../../shell/shell.ts'
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
export class OpenSandbox implements Sandbox {
  readonly id: string
  readonly backend = 'opensandbox'
  readonly cwd: string
  readonly capabilities: SandboxCapabilities
  readonly files: SandboxFiles
  readonly #place: OpenSandboxPlace
  readonly #marks: ChangeMarks
  readonly #running = new Set<ShellCommand>()
  readonly #mark = newId()
  readonly #renewal: NodeJS.Timeout
  #commands = 0
  #closing: Promise<void> | undefined

  constructor(place: OpenSandboxPlace) {
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
    const mark = `${this.#mark}.${this.#commands++}.`
    const started = new ShellCommand(command, options, {
      root,
      mark,
      check: () => this.#check(),
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
        // Whoever ends the sandbox ends everything in it.
        if (this.#closing !== undefined) return
        const argv = ['/bin/sh', '-c', killScript, 'sh', mark, pipe, '']
        await (await startStream(remote, { argv }, () => true)).ended
      },
    })
    this.#running.add(started)
    const forget = () => void this.#running.delete(started)
    started.result.then(forget, forget)
    return started
  }

  async changes(since?: string): Promise<{ readonly mark: string; readonly paths: readonly string[] }> {
    const { output } = await this.#run(stampScript, [this.cwd], { isLong: true })
    return this.#marks.compare(parseStamps(output), since)
  }

  async snapshot(): Promise<string> {
    return (await this.#copy()).id
  }

  async fork(count: number): Promise<readonly Sandbox[]> {
    if (!Number.isInteger(count) || count < 1) {
      throw new RathError('invalid-argument', `A sandbox is forked once or more, not ${count} times.`)
    }
    return openAll(await this.#copy(), count, copy => this.#place.open(copy))
  }

  async expose(port: number): Promise<string> {
    this.#check()
    try {
      return await this.#place.remote.getEndpointUrl(port)
    } catch (error) {
      throw this.#error(error, `exposing port ${port}`)
    }
  }

  close(): Promise<void> {
    this.#closing ??= this.#close()
    return this.#closing
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }

  async #close(): Promise<void> {
    // In its own turn, so that commands find the sandbox closing when they are told to end.
    await Promise.resolve()
    clearInterval(this.#renewal)
    const { remote, copy } = this.#place
    const running = [...this.#running]
    for (const command of running) command.kill()
    await remote.kill().catch(error => {
      if (statusOf(error) !== 404) throw this.#error(error, 'closing the sandbox')
    })
    await Promise.allSettled(running.map(command => command.result))
    await copy?.release()
    await remote.close()
  }

  async #run(script: string, args: readonly string[], options: ShellOptions = {}): Promise<ShellResult> {
    this.#check()
    try {
      return await runScript(this.#place.remote, script, args, options)
    } catch (error) {
      this.#check()
      throw this.#error(error, 'running a script')
    }
  }

  async #copy(): Promise<SharedCopy> {
    this.#check()
    try {
      return await takeSnapshot(this.#place.remote)
    } catch (error) {
      throw this.#error(error, 'taking a snapshot')
    }
  }

  #error(error: unknown, doing: string): RathError {
    return serverError(error, doing, this.#place.remote.connectionConfig.domain)
  }

  #check(): void {
    if (this.#closing !== undefined) {
      throw new RathError('sandbox-closed', `The sandbox ${this.id} is closed; open another one.`)
    }
  }
}
