import { RathError } from '../../base/errors.ts'
import { newId } from '../../base/ids.ts'
import type { ExecHandle, ExecOptions } from '../spec.ts'
import { type CommandRoom, ShellCommand } from './command.ts'

/** What sandboxes have in common whose commands run in a shell elsewhere: those under way, and one end for all of them. */
export abstract class ShellSandbox implements AsyncDisposable {
  readonly #running = new Set<ShellCommand>()
  readonly #mark = newId()
  #commands = 0
  #closing: Promise<void> | undefined

  /** What it is called in messages: `The sandbox 7`. */
  protected abstract get called(): string
  /** Ends everything in it. */
  protected abstract shut(): Promise<void>
  /** Frees what it held, once nothing is left in it. */
  protected abstract letGo(): Promise<void>

  close(): Promise<void> {
    this.#closing ??= this.#close()
    return this.#closing
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }

  protected start(
    command: string | readonly string[],
    options: ExecOptions,
    room: (mark: string) => Omit<CommandRoom, 'mark' | 'check'>,
  ): ExecHandle {
    const mark = `${this.#mark}.${this.#commands++}.`
    const { root, start, sweep, lastWords } = room(mark)
    const started = new ShellCommand(command, options, {
      root,
      mark,
      check: () => this.check(),
      start,
      // Whoever ends the sandbox ends everything in it.
      sweep: async pipe => (this.#closing === undefined ? sweep(pipe) : undefined),
      ...(lastWords && { lastWords }),
    })
    this.#running.add(started)
    const forget = () => void this.#running.delete(started)
    started.result.then(forget, forget)
    return started
  }

  protected check(): void {
    if (this.#closing === undefined) return
    throw new RathError('sandbox-closed', `${this.called} is closed; open another one.`)
  }

  async #close(): Promise<void> {
    // In its own turn, so that commands find the sandbox closing when they are told to end.
    await Promise.resolve()
    const running = [...this.#running]
    for (const command of running) command.kill()
    await this.shut()
    await Promise.allSettled(running.map(command => command.result))
    await this.letGo()
  }
}
