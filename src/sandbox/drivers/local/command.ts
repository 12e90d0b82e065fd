import { type ChildProcess, spawn } from 'node:child_process'
import { stat } from 'node:fs/promises'
import type { Readable } from 'node:stream'
import { cancelledError, onAbort } from '../../../base/abort.ts'
import { RathError, show } from '../../../base/errors.ts'
import { OutputKeeper } from '../../output.ts'
import { OutputFeed } from '../../output-feed.ts'
import {
  defaultExecOutput,
  type ExecHandle,
  type ExecOptions,
  type ExecOutput,
  type ExecResult,
} from '../../spec.ts'
import { checkCommand } from './check-command.ts'
import { pathError, type WorkspacePaths } from './paths.ts'
import { ProcessWindow } from './process-window.ts'
import { endTree, killTree, markName, openMark } from './processes.ts'

/** What a command gets from its sandbox. */
export interface CommandRoom {
  readonly paths: WorkspacePaths
  readonly environment: Readonly<Record<string, string>>
  /** Of this command alone. */
  readonly mark: string
  /** Throws once the sandbox is closed. */
  check(): void
}

/** How long output may trickle in when the command and its processes are gone, from one that got away. */
const lastWords = 500

/** One command in a process group of its own. Its end, however it comes, is the end of everything it started. */
export class LocalCommand implements ExecHandle {
  readonly result: Promise<ExecResult>
  readonly #room: CommandRoom
  readonly #feed = new OutputFeed(() => this.#flow(true))
  #child: ChildProcess | undefined
  readonly #since = new ProcessWindow()
  #isKilled = false

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
    this.#isKilled = true
    if (this.#child !== undefined) killTree(this.#tree)
  }

  [Symbol.asyncIterator](): AsyncIterator<ExecOutput> {
    return this.#feed[Symbol.asyncIterator]()
  }

  get #tree() {
    // Once the leader is gone and collected, its number may be given to another.
    const child = this.#child
    const isThere = child !== undefined && child.exitCode === null && child.signalCode === null
    return { mark: this.#room.mark, since: this.#since, leader: isThere ? child.pid : undefined }
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
      const child = this.#start(command, cwd, options)
      this.#child = child
      for (const stream of ['stdout', 'stderr'] as const) {
        child[stream]?.on('data', (data: Buffer) => {
          kept[stream].add(data)
          if (!this.#feed.push({ stream, data })) this.#flow(false)
        })
      }
      const stop = () => {
        // It may have ended in time, and only its leftovers be there still.
        if (this.#tree.leader !== undefined) timedOut = true
        this.kill()
      }
      const timer = timeout === undefined ? undefined : setTimeout(stop, timeout)
      using _ = signal ? onAbort(signal, () => this.kill()) : { [Symbol.dispose]() {} }
      ended = await this.#end(child, command).finally(() => clearTimeout(timer))
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

  #start(command: string | readonly string[], cwd: string, { env = {}, stdin }: ExecOptions): ChildProcess {
    const argv = typeof command === 'string' ? ['/bin/sh', '-c', command] : command
    const [program = '', ...args] = argv
    using mark = openMark(this.#room.mark)
    try {
      const child = spawn(program, args, {
        cwd,
        env: {
          ...this.#room.environment,
          ...env,
          [markName]: (process.env[markName] ?? '') + this.#room.mark,
        },
        // A group and a session of its own, so that one signal reaches all of it and none of ours.
        detached: true,
        stdio: [stdin === undefined ? 'ignore' : 'pipe', 'pipe', 'pipe', mark?.fd ?? 'ignore'],
      })
      // A command that does not read its input is no failure.
      child.stdin?.on('error', () => {}).end(stdin)
      return child
    } catch (error) {
      throw startError(error, program)
    }
  }

  async #end(child: ChildProcess, command: string | readonly string[]): Promise<Ended> {
    const closed = new Promise<void>(resolve => child.once('close', () => resolve()))
    const ended = await new Promise<Ended>((resolve, reject) => {
      child.once('error', error => reject(startError(error, program(command))))
      child.once('exit', (exitCode, signal) => resolve({ exitCode, signal: signal ?? undefined }))
    })
    // The number is still known to be free: the process was collected in this very turn.
    await endTree({ ...this.#tree, leader: child.pid })
    this.#flow(true)
    const timer = setTimeout(() => child.emit('close'), lastWords)
    await closed
    clearTimeout(timer)
    for (const stream of [child.stdout, child.stderr]) stream?.destroy()
    return ended
  }

  /** Reads on, or lets the command wait until its follower has caught up. When it has ended, there is little left to read. */
  #flow(goOn: boolean): void {
    const child = this.#child
    const hasEnded = child !== undefined && (child.exitCode !== null || child.signalCode !== null)
    for (const stream of [child?.stdout, child?.stderr] as (Readable | undefined)[]) {
      if (goOn || hasEnded) stream?.resume()
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

function startError(error: unknown, program: string): RathError {
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
