import { stat } from 'node:fs/promises'
import type { Readable, Writable } from 'node:stream'
import { cancelledError, onAbort } from '../../base/abort.ts'
import { RathError, show } from '../../base/errors.ts'
import { OutputKeeper } from '../output.ts'
import { OutputFeed } from '../output-feed.ts'
import {
  defaultExecOutput,
  type ExecHandle,
  type ExecOptions,
  type ExecOutput,
  type ExecResult,
} from '../spec.ts'
import { checkCommand } from './check-command.ts'
import { pathError, type WorkspacePaths } from './paths.ts'

/** What a command gets from its sandbox. */
export interface CommandRoom {
  readonly paths: WorkspacePaths
  /** Throws once the sandbox is closed. */
  check(): void
  /** Starts a program and its arguments in a folder, with standard input and output as pipes. */
  launch(argv: readonly [string, ...string[]], options: LaunchOptions): Launched | Promise<Launched>
}

export interface LaunchOptions {
  /** A real path of this machine. */
  readonly cwd: string
  readonly env: Readonly<Record<string, string>>
  readonly hasInput: boolean
  /** Aborts when the command is killed, for who takes a while to launch it. */
  readonly signal?: AbortSignal
}

/** What is used of a `ChildProcess`. */
export interface RunningChild {
  readonly stdin: Writable | null
  readonly stdout: Readable | null
  readonly stderr: Readable | null
  readonly exitCode: number | null
  readonly signalCode: NodeJS.Signals | null
  once(event: 'exit', listener: (exitCode: number | null, signal: NodeJS.Signals | null) => void): this
  once(event: 'error', listener: (error: Error) => void): this
  once(event: 'close', listener: () => void): this
  emit(event: 'close'): boolean
}

/** A program under way, and what its backend knows about everything that it started. */
export interface Launched {
  readonly child: RunningChild
  /** Kills all of it, without waiting. May be called at any time. */
  kill(): void
  /** Called once the child has ended: kills what is left, and resolves when nothing is. */
  end(): Promise<void>
  /** Why the program was not started after all, if the way it ended says so. */
  failure?(exitCode: number | null, stderr: Uint8Array): RathError | undefined
  /** What to add to its errors once it has ended: why it was ended, if nobody asked for it. */
  lastWords?(): string
}

/** How long output may trickle in when the command and its processes are gone, from one that got away. */
const trickle = 500

/** One command in a process group of its own. Its end, however it comes, is the end of everything it started. */
export class HostCommand implements ExecHandle {
  readonly result: Promise<ExecResult>
  readonly #room: CommandRoom
  readonly #feed = new OutputFeed(() => this.#flow(true))
  readonly #killing = new AbortController()
  #launched: Launched | undefined

  constructor(command: string | readonly string[], options: ExecOptions, room: CommandRoom) {
    this.#room = room
    this.result = this.#run(command, options)
    // Whoever only follows the output, or kills, has no use for the result.
    this.result.then(
      () => this.#feed.end(),
      error => this.#feed.end({ error }),
    )
  }

  kill(): void {
    this.#killing.abort()
    this.#launched?.kill()
  }

  [Symbol.asyncIterator](): AsyncIterator<ExecOutput> {
    return this.#feed[Symbol.asyncIterator]()
  }

  get #isKilled(): boolean {
    return this.#killing.signal.aborted
  }

  get #isRunning(): boolean {
    const child = this.#launched?.child
    return child !== undefined && child.exitCode === null && child.signalCode === null
  }

  async #run(command: string | readonly string[], options: ExecOptions): Promise<ExecResult> {
    checkCommand(command, options)
    const { signal, timeout, outputLimit = defaultExecOutput } = options
    const cwd = await this.#folder(options.cwd ?? '.')
    this.#room.check()
    if (signal?.aborted) throw cancelledError(signal)
    const kept = { stdout: new OutputKeeper(outputLimit), stderr: new OutputKeeper(outputLimit) }
    const start = performance.now()
    let timedOut = false
    let ended: Ended = { exitCode: null, signal: 'SIGKILL' }
    if (!this.#isKilled) {
      const stop = () => {
        // It may have ended in time, and only its leftovers be there still.
        if (this.#launched === undefined || this.#isRunning) timedOut = true
        this.kill()
      }
      const timer = timeout === undefined ? undefined : setTimeout(stop, timeout)
      using _ = signal ? onAbort(signal, () => this.kill()) : { [Symbol.dispose]() {} }
      try {
        const child = await this.#start(command, cwd, options)
        if (child !== undefined) {
          for (const stream of ['stdout', 'stderr'] as const) {
            child[stream]?.on('data', (data: Buffer) => {
              kept[stream].add(data)
              if (!this.#feed.push({ stream, data })) this.#flow(false)
            })
          }
          ended = await this.#end(child, command)
        }
      } finally {
        clearTimeout(timer)
      }
      const failure = this.#isKilled
        ? undefined
        : this.#launched?.failure?.(ended.exitCode, kept.stderr.bytes())
      if (failure) throw failure
      const data = Buffer.from(this.#launched?.lastWords?.() ?? '')
      if (data.length > 0) {
        kept.stderr.add(data)
        this.#feed.push({ stream: 'stderr', data })
      }
    }
    if (signal?.aborted) throw cancelledError(signal)
    return {
      exitCode: ended.exitCode,
      ...(ended.signal !== undefined && { signal: ended.signal }),
      stdout: kept.stdout.bytes(),
      stderr: kept.stderr.bytes(),
      truncated: kept.stdout.truncated || kept.stderr.truncated,
      timedOut,
      durationMs: performance.now() - start,
    }
  }

  /** Undefined when it was killed before it began. */
  async #start(
    command: string | readonly string[],
    cwd: string,
    { env = {}, stdin }: ExecOptions,
  ): Promise<RunningChild | undefined> {
    const argv = typeof command === 'string' ? ['/bin/sh', '-c', command] : command
    try {
      const hasInput = stdin !== undefined
      const options = { cwd, env, hasInput, signal: this.#killing.signal }
      const launching = this.#room.launch(argv as [string, ...string[]], options)
      // A child process says in the next turn that it could not be started, and somebody has to listen by then.
      const launched = launching instanceof Promise ? await launching : launching
      this.#launched = launched
      if (this.#isKilled) launched.kill()
      // A command that does not read its input is no failure.
      launched.child.stdin?.on('error', () => {}).end(stdin)
      return launched.child
    } catch (error) {
      if (this.#isKilled) return undefined
      throw startError(error, program(command))
    }
  }

  async #end(child: RunningChild, command: string | readonly string[]): Promise<Ended> {
    const closed = new Promise<void>(resolve => child.once('close', () => resolve()))
    const ended = await new Promise<Ended>((resolve, reject) => {
      child.once('error', error => reject(startError(error, program(command))))
      child.once('exit', (exitCode, signal) => {
        // Some launchers end as a shell would say it when what they started was killed.
        if (this.#isKilled && exitCode === 128 + 9) resolve({ exitCode: null, signal: 'SIGKILL' })
        else resolve({ exitCode, signal: signal ?? undefined })
      })
    })
    await this.#launched?.end()
    this.#flow(true)
    // On a busy machine the time is over before anything was read: what lies ready is read before that counts.
    const giveUp = () => setImmediate(() => setImmediate(() => child.emit('close')))
    const timer = setTimeout(giveUp, trickle)
    await closed
    clearTimeout(timer)
    for (const stream of [child.stdout, child.stderr]) stream?.destroy()
    return ended
  }

  /** Reads on, or lets the command wait until its follower has caught up. When it has ended, there is little left to read. */
  #flow(goOn: boolean): void {
    const child = this.#launched?.child
    for (const stream of [child?.stdout, child?.stderr] as (Readable | undefined)[]) {
      if (goOn || !this.#isRunning) stream?.resume()
      else stream?.pause()
    }
  }

  async #folder(path: string): Promise<string> {
    this.#room.check()
    try {
      const real = await this.#room.paths.resolve(path)
      if ((await stat(real)).isDirectory()) return real
    } catch (error) {
      throw pathError(error, path)
    }
    throw new RathError('path-kind', `${show(path)} is not a folder, and commands run in one.`, {
      data: { path },
    })
  }
}

interface Ended {
  readonly exitCode: number | null
  readonly signal: string | undefined
}

function program(command: string | readonly string[]): string {
  return typeof command === 'string' ? '/bin/sh' : (command[0] ?? '')
}

/** What the system said when a program could not be started. */
export function startError(error: unknown, program: string): RathError {
  if (error instanceof RathError) return error
  const { code = 'unknown', message } = error as NodeJS.ErrnoException
  const why =
    code === 'ENOENT'
      ? 'there is no such program'
      : code === 'E2BIG'
        ? 'the command is too long; write it to a file and run that'
        : message
  return new RathError('sandbox-failed', `${show(program)} could not be started: ${why}.`, {
    cause: error,
    data: { program, code },
  })
}
