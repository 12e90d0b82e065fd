import { cancelledError, onAbort } from '../../base/abort.ts'
import { RathError, show } from '../../base/errors.ts'
import { checkCommand } from '../host/check-command.ts'
import { OutputKeeper } from '../output.ts'
import { OutputFeed } from '../output-feed.ts'
import {
  defaultExecOutput,
  type ExecHandle,
  type ExecOptions,
  type ExecOutput,
  type ExecResult,
} from '../spec.ts'
import { FirstLine } from './first-line.ts'
import { refusal } from './path-script.ts'

/** What a command needs of its sandbox. */
export interface CommandRoom {
  readonly root: string
  /** Of this command alone: letters, digits, `-` and `.`. */
  readonly mark: string
  /** Throws once the sandbox is closed. */
  check(): void
  /** Runs `commandScript` for this command. `output` returns false when more should wait for `flow(true)`. */
  start(request: CommandRequest, output: (output: ExecOutput) => boolean): Promise<RunningScript>
  /** Runs `killScript`: when it resolves, nothing is left that carries the mark. */
  sweep(pipe: string): Promise<void>
  /** What to add to its errors once it has ended. */
  lastWords?(): string
}

export interface CommandRequest {
  readonly argv: readonly string[]
  readonly cwd: string
  readonly env: Readonly<Record<string, string>>
  readonly stdin: Uint8Array | undefined
}

export interface RunningScript {
  /** The exit code; null when nobody can tell, since the connection or the container is gone. Never rejects. */
  readonly ended: Promise<number | null>
  /** Lets output come, or wait. */
  flow(goOn: boolean): void
  /** Lets go of a script that does not end. */
  abandon(): void
}

/** How long a command that was killed may take until the other side says so. */
const patience = 10_000

/** One command behind a script that says whether it started, and ends what it left. */
export class ShellCommand implements ExecHandle {
  readonly result: Promise<ExecResult>
  readonly #room: CommandRoom
  readonly #feed = new OutputFeed(() => this.#running?.flow(true))
  readonly #first: FirstLine
  #running: RunningScript | undefined
  #stopping: Promise<void> | undefined
  #isKilled = false

  constructor(command: string | readonly string[], options: ExecOptions, room: CommandRoom) {
    this.#room = room
    this.#first = new FirstLine(room.mark)
    this.result = this.#run(command, options)
    // Whoever only follows the output, or kills, has no use for the result.
    this.result.then(
      () => this.#feed.end(),
      error => this.#feed.end({ error }),
    )
  }

  kill(): void {
    this.#isKilled = true
    if (this.#running !== undefined) this.#stopping ??= this.#stop(this.#running)
  }

  [Symbol.asyncIterator](): AsyncIterator<ExecOutput> {
    return this.#feed[Symbol.asyncIterator]()
  }

  async #run(command: string | readonly string[], options: ExecOptions): Promise<ExecResult> {
    checkCommand(command, options)
    this.#room.check()
    const { signal, timeout, outputLimit = defaultExecOutput, cwd = '.', env = {}, stdin } = options
    if (signal?.aborted) throw cancelledError(signal)
    const kept = { stdout: new OutputKeeper(outputLimit), stderr: new OutputKeeper(outputLimit) }
    const argv = typeof command === 'string' ? ['/bin/sh', '-c', command] : command
    const input = typeof stdin === 'string' ? new TextEncoder().encode(stdin) : stdin
    const start = performance.now()
    let timedOut = false
    let exitCode: number | null = null
    // Killed in the turn that it was made in: nothing of it was seen anywhere.
    await Promise.resolve()
    if (!this.#isKilled) {
      let hasEnded = false
      const running = await this.#room.start({ argv, cwd, env, stdin: input }, ({ stream, data }) => {
        const own = stream === 'stderr' ? this.#first.rest(data) : data
        if (own.length === 0) return true
        kept[stream].add(own)
        return this.#feed.push({ stream, data: own })
      })
      this.#running = running
      const stop = () => {
        timedOut = !hasEnded
        this.kill()
      }
      const timer = timeout === undefined ? undefined : setTimeout(stop, timeout)
      using _ = signal ? onAbort(signal, () => this.kill()) : { [Symbol.dispose]() {} }
      if (this.#isKilled) this.kill()
      exitCode = await running.ended
      hasEnded = true
      clearTimeout(timer)
      this.#first.end()
      if (!this.#isKilled) this.#refuse(cwd, argv[0] as string, exitCode)
      // The script cleans up behind the command, unless a signal ended the script itself.
      if (exitCode === null || exitCode > 128) this.#stopping ??= this.#stop(running)
      await this.#stopping
      const data = Buffer.from(this.#room.lastWords?.() ?? '')
      if (data.length > 0) {
        kept.stderr.add(data)
        this.#feed.push({ stream: 'stderr', data })
      }
    }
    if (signal?.aborted) throw cancelledError(signal)
    const isKilled = this.#isKilled || exitCode === null
    return {
      exitCode: isKilled ? null : exitCode,
      ...(isKilled && { signal: 'SIGKILL' }),
      stdout: kept.stdout.bytes(),
      stderr: kept.stderr.bytes(),
      truncated: kept.stdout.truncated || kept.stderr.truncated,
      timedOut,
      durationMs: performance.now() - start,
    }
  }

  /** What has not begun yet cannot be found to be killed, so the word that it has is waited for. */
  async #stop(running: RunningScript): Promise<void> {
    const timer = setTimeout(() => running.abandon(), patience)
    try {
      await Promise.race([this.#first.word, running.ended])
      running.flow(true)
      await this.#room.sweep(this.#first.pipe)
    } catch {
      // A place that is gone or out of reach has nothing left to kill.
    }
    await running.ended
    clearTimeout(timer)
  }

  #refuse(cwd: string, program: string, exitCode: number | null): void {
    const { said, text } = this.#first
    if (said === 'started') return
    const refused = said === undefined ? undefined : refusal(said, cwd, this.#room.root)
    if (refused !== undefined) throw refused
    // Closed before it began.
    if (said === undefined && exitCode === null) return
    const why =
      said === 'no-program'
        ? 'there is no such program'
        : said === 'no-input'
          ? 'its input could not be kept in the temporary folder'
          : `the sandbox said ${show(text || exitCode)}`
    throw new RathError('sandbox-failed', `${show(program)} could not be started: ${why}.`, {
      data: { program, exitCode },
    })
  }
}
