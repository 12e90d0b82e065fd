import type { ChildProcess } from 'node:child_process'
import { EventEmitter } from 'node:events'
import { closeSync, constants, fstatSync, openSync, rmSync, statSync, unlinkSync } from 'node:fs'
import { Socket } from 'node:net'
import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import { setTimeout as pause, setImmediate } from 'node:timers/promises'
import { onAbort } from '../../../base/abort.ts'
import { RathError } from '../../../base/errors.ts'
import { startOf } from '../../../base/process.ts'
import { startSystem, systemProgram } from '../../../base/programs.ts'
import { type RunningChild, startError } from '../../host/command.ts'
import { orNothing } from '../../host/or-nothing.ts'
import { withoutInherited } from './inherited.ts'
import { insideCommand, notFound, notStarted } from './launch.ts'
import type { WatchedCommand } from './memory-watch.ts'

export interface SupervisorsOptions {
  /** Put before the shell: the way into cgroups, namespaces and another user. */
  readonly before: readonly string[]
  /** Variables that these need. */
  readonly env: Readonly<Record<string, string>>
  readonly bwrap: string
  /** The filter for system calls, as a file. */
  readonly filter: string
  /** What a supervisor mounts when it starts. */
  readonly staged: readonly string[]
  /** Makes a folder of this name for one supervisor, that no sandbox sees and that belongs to whoever the shell becomes. */
  pipes(name: string): string
}

interface SupervisedCommand {
  readonly argv: readonly [string, ...string[]]
  readonly hasInput: boolean
  /** Of bubblewrap, for this command. */
  readonly options: readonly string[]
  /** Put before the program, inside. */
  readonly inside: readonly string[]
}

/** So many wait for a command, for so many milliseconds. More are there only while as many commands run at once. */
const kept = 2
const keptFor = 5 * 60_000

/** The supervisors of one sandbox: one for each command that runs at the same time. */
export class Supervisors {
  readonly #options: SupervisorsOptions
  readonly #all = new Set<Supervisor>()
  readonly #free = new Map<Supervisor, NodeJS.Timeout>()
  #made = 0
  #mounted = ''

  constructor(options: SupervisorsOptions) {
    this.#options = options
  }

  /** The command is asked for when there is who starts it, so that it sees the workspace as it is then. */
  async launch(command: () => SupervisedCommand, signal: AbortSignal | undefined): Promise<WatchedCommand> {
    this.#refresh()
    const mounted = this.#mounted
    const supervisor = this.#take() ?? (await this.#start(signal))
    const release = () => {
      if (this.#free.size < kept && mounted === this.#mounted) this.#keep(supervisor)
      else void supervisor.close()
    }
    try {
      return supervisor.run(command(), release)
    } catch (error) {
      release()
      throw error
    }
  }

  #take(): Supervisor | undefined {
    for (const [supervisor, timer] of this.#free) {
      clearTimeout(timer)
      this.#free.delete(supervisor)
      if (supervisor.isFree) return supervisor
    }
    return undefined
  }

  #keep(supervisor: Supervisor): void {
    const end = () => {
      this.#free.delete(supervisor)
      void supervisor.close()
    }
    this.#free.set(supervisor, setTimeout(end, keptFor).unref())
  }

  #start(signal: AbortSignal | undefined): Promise<Supervisor> {
    const { staged: _, pipes, ...options } = this.#options
    return Supervisor.start({ ...options, pipes: pipes(`pipes-${this.#made++}`), signal }, this.#all)
  }

  async close(): Promise<void> {
    for (const timer of this.#free.values()) clearTimeout(timer)
    await Promise.all([...this.#all].map(each => each.close()))
  }

  /** When nothing can be awaited. */
  kill(): void {
    for (const each of this.#all) each.kill()
  }

  /** A folder that was replaced by another of its name since is not the one that they have mounted. */
  #refresh(): void {
    const mounted = this.#options.staged.map(nameOf).join(' ')
    if (mounted === this.#mounted) return
    this.#mounted = mounted
    for (let old = this.#take(); old !== undefined; old = this.#take()) void old.close()
  }
}

function nameOf(path: string): string {
  const found = statSync(path, orNothing)
  return found === undefined ? 'none' : [found.dev, found.ino, found.uid, found.gid].join(':')
}

interface SupervisorOptions extends Omit<SupervisorsOptions, 'staged' | 'pipes'> {
  readonly pipes: string
  readonly signal: AbortSignal | undefined
}

/**
 * A shell outside the walls that has joined the cgroup, sees the mounts and is the user that commands are, and that starts bubblewrap for one command
 * after another: what is the same for all of them is done once. It reads what to start from a pipe of this process and takes everything that it started with
 * it when the pipe ends, also when this process is killed.
 *
 * One command at a time: what bubblewrap reports through the shell's own socket is then about that command. It is a socket, and neither a pipe nor a
 * file, because a process that sees another one's open pipe can open it again through `/proc`, and a socket cannot be opened in that way.
 */
class Supervisor {
  readonly #process: ChildProcess
  readonly #options: SupervisorOptions
  readonly #sockets: readonly Socket[]
  readonly #control: Socket | undefined
  readonly #ready = Promise.withResolvers<void>()
  readonly #ended = Promise.withResolvers<void>()
  #status = ''
  #errors = ''
  #pipes = 0
  #isAlive = true
  #running: Supervised | undefined
  #idle: (() => void) | undefined

  /** In `all` as long as it is there. Rejects with what the programs said that it goes through. */
  static async start(options: SupervisorOptions, all: Set<Supervisor>): Promise<Supervisor> {
    const made = new Supervisor(options)
    all.add(made)
    void made.#ended.promise.then(() => {
      all.delete(made)
      rmSync(options.pipes, { recursive: true, force: true })
    })
    using _ = options.signal ? onAbort(options.signal, () => made.kill()) : { [Symbol.dispose]() {} }
    await made.#ready.promise
    made.#keepAwake(false)
    return made
  }

  private constructor(options: SupervisorOptions) {
    this.#options = options
    const [first, ...rest] = [...options.before, '/bin/sh']
    using files = withoutInherited(['pipe', 'ignore', 'pipe', 'ignore', 'ignore', 'pipe', 'pipe'])
    // A session of its own, and so a group that one signal ends.
    this.#process = startSystem(first as string, rest, {
      env: options.env,
      cwd: '/',
      detached: true,
      stdio: files.stdio,
    })
    // One that could not be started at all has none of them.
    const [control, , errors, , , status, shell] = (this.#process.stdio ?? []) as unknown as Socket[]
    this.#sockets = [control, errors, status, shell].flatMap(socket => socket ?? [])
    for (const socket of this.#sockets) socket.on('error', () => {})
    this.#control = control
    errors?.setEncoding('utf8').on('data', (text: string) => this.#complain(text))
    status?.setEncoding('latin1').on('data', (text: string) => this.#read(text))
    shell?.on('data', () => this.#running?.lacksProgram())
    this.#process.once('error', error => this.#end(error.message))
    // What it started ends with it by itself, except a process of the shell that waits for a pipe.
    this.#process.once('exit', () => this.kill())
    this.#process.once('close', () => this.#end(this.#errors.trim()))
    this.#control?.write(prologue(options.pipes))
  }

  /** It can take another command. */
  get isFree(): boolean {
    return this.#isAlive && this.#running === undefined
  }

  /** Calls back once it is free again, and not if it ends before or throws. */
  run(command: SupervisedCommand, whenFree: () => void): WatchedCommand {
    const { bwrap, filter, pipes } = this.#options
    const n = this.#pipes++ % pipesAtOnce
    const names = { in: join(pipes, `in${n}`), out: join(pipes, `out${n}`), err: join(pipes, `err${n}`) }
    const running = new Supervised(command, names, {
      finish: () => this.#control?.write(this.#finish(names)),
      abort: () => this.kill(),
    })
    this.#running = running
    this.#idle = whenFree
    this.#keepAwake(true)
    const program = [bwrap, '--args', '3', '--seccomp', '4', '--json-status-fd', '5', '--']
    // The options go through a pipe, since every user of the machine can read a command line. `printf` is a part of the shell.
    this.#control?.write(
      `printf '%s\\0' ${quoted(command.options)} | ` +
        `${quoted([...program, ...insideCommand(command.argv, command.inside)])} ` +
        `3<&0 4<${quoted([filter])} <${command.hasInput ? `in${n}` : '/dev/null'} >out${n} 2>err${n} &\n`,
    )
    return running.launched
  }

  /** Ends it and all that it started. */
  kill(): void {
    if (!this.#isAlive || this.#process.pid === undefined) return
    try {
      process.kill(-this.#process.pid, 'SIGKILL')
    } catch {
      // It has ended, and nobody has noticed yet.
    }
  }

  close(): Promise<void> {
    this.#keepAwake(true)
    this.#control?.end()
    return this.#ended.promise
  }

  #finish(names: Readonly<Record<string, string>>): string {
    for (const name of Object.values(names)) unlink(name)
    const more = this.#pipes % pipesAtOnce === 0 ? `${makePipes()} || exit\n` : ''
    return `wait $! 2>/dev/null; echo "ended $?" >&5\n${more}echo ready >&5\n`
  }

  #read(text: string): void {
    const lines = (this.#status + text).split('\n')
    this.#status = lines.pop() as string
    for (const line of lines) {
      if (line === 'ready') this.#free()
      else this.#running?.report(line)
    }
  }

  #free(): void {
    this.#ready.resolve()
    if (this.#running === undefined) return
    const ended = this.#running
    this.#running = undefined
    this.#keepAwake(false)
    this.#idle?.()
    ended.free()
  }

  /** Before bubblewrap runs, these are words of the shell, that a pipe or a process could not be made. */
  #complain(text: string): void {
    this.#errors = (this.#errors + text).slice(-4000)
    if (this.#running?.isStarting) this.kill()
  }

  #end(why: string): void {
    if (!this.#isAlive) return
    this.#isAlive = false
    this.#ready.reject(notStarted(why, this.#process.exitCode))
    this.#running?.lose(why)
    this.#ended.resolve()
  }

  /** While nothing runs, it does not keep this process from ending. */
  #keepAwake(isAwake: boolean): void {
    for (const each of [this.#process, ...this.#sockets]) isAwake ? each.ref() : each.unref()
  }
}

/** Pipes with a name for so many commands are made by one program. Each serves one command: what is left of that could still hold it. */
const pipesAtOnce = 8

const makePipes = () => {
  const names = Array.from({ length: pipesAtOnce }, (_, n) => `in${n} out${n} err${n}`)
  return `${quoted([systemProgram('mkfifo')])} -m 600 ${names.join(' ')}`
}

/** What a shell prints with a program of its own could be read on that program's command line. */
const prologue = (pipes: string) => `trap 'kill -KILL 0' EXIT
case $(command -v printf) in printf) ;; *) echo 'openrath: /bin/sh has no printf of its own' >&2; exit 1 ;; esac
cd ${quoted([pipes])} && ${makePipes()} || exit 1
echo ready >&5
`

function quoted(words: readonly string[]): string {
  return words.map(word => `'${word.replaceAll("'", "'\\''")}'`).join(' ')
}

/** Milliseconds until a process that the kernel does not end, as one that waits for a disk, is left to it. */
const longestEnd = 10_000
/** It takes less than a millisecond as a rule. */
const quickLooks = 20

/** One command, in the form of a child process. */
class Supervised extends EventEmitter implements RunningChild {
  readonly stdin: PassThrough | null
  readonly stdout: Socket
  readonly stderr: Socket
  exitCode: number | null = null
  signalCode: NodeJS.Signals | null = null
  readonly launched: WatchedCommand
  readonly #argv: SupervisedCommand['argv']
  readonly #input: string
  readonly #supervisor: { finish(): void; abort(): void }
  readonly #freed = Promise.withResolvers<void>()
  /** Open for both, so that the command can open its input before there is any. */
  #anchor: number | undefined
  #open = 2
  #inner: { readonly pid: number; readonly start: string | undefined } | undefined
  #isStarted = false
  #isFinishing = false
  #isMissing = false
  #isClosed = false
  #lost: string | undefined

  constructor(
    { argv, hasInput }: SupervisedCommand,
    names: { readonly in: string; readonly out: string; readonly err: string },
    supervisor: { finish(): void; abort(): void },
  ) {
    super()
    this.#argv = argv
    this.#input = names.in
    this.#supervisor = supervisor
    this.stdout = reader(names.out)
    this.stderr = reader(names.err)
    this.#anchor = hasInput ? openPipe(names.in, constants.O_RDWR) : undefined
    this.stdin = hasInput ? new PassThrough() : null
    for (const stream of [this.stdout, this.stderr]) stream.once('close', () => this.#closeOne())
    this.launched = {
      child: this,
      inner: () => this.#inner?.pid,
      kill: () => this.#kill(),
      end: () => this.#end(),
      failure: (exitCode, stderr) => this.#failure(exitCode, stderr),
    }
  }

  /** No process of the sandbox is there yet. */
  get isStarting(): boolean {
    return this.#inner === undefined && !this.#isFinishing
  }

  lacksProgram(): void {
    this.#isMissing = true
  }

  /** A line of bubblewrap, or of the shell that waited for it. */
  report(line: string): void {
    const [, word, number] = /^(?:\{ )?"?(child-pid|exit-code|ended)"?:? (\d+)/.exec(line) ?? []
    if (word === 'child-pid') this.#begin(Number(number))
    if (word === 'exit-code') {
      this.#isStarted = true
      this.#exit(Number(number), null)
      this.#finish()
    }
    if (word === 'ended') this.#exit(Number(number), null)
  }

  /** The supervisor has collected it. */
  free(): void {
    this.#freed.resolve()
  }

  /** The supervisor is gone, and everything that it started with it. */
  lose(why: string): void {
    this.#lost = why
    this.#exit(null, 'SIGKILL')
    this.#freed.resolve()
    // Pipes that nobody has written to have no end; what lies in others is read first.
    if (this.#inner === undefined) {
      void this.#letGoOf([this.stdout, this.stderr])
    }
  }

  async #letGoOf(streams: readonly Socket[]): Promise<void> {
    for (let turns = 0; turns < 2; turns++) await setImmediate()
    for (const stream of streams) stream.destroy()
  }

  #begin(pid: number): void {
    this.#inner = { pid, start: startOf(pid) }
    if (this.#anchor === undefined) return
    // Only now is the command known to have its end: a pipe that is let go before that loses what was written.
    try {
      const input = new Socket({ fd: openPipe(this.#input, constants.O_WRONLY), readable: false })
      input.on('error', () => {})
      this.stdin?.pipe(input)
      this.once('exit', () => input.destroy())
    } catch {
      // It has ended without reading any.
    }
    this.#letGo()
  }

  #letGo(): void {
    if (this.#anchor !== undefined) closeSync(this.#anchor)
    this.#anchor = undefined
  }

  #exit(exitCode: number | null, signal: NodeJS.Signals | null): void {
    if (this.exitCode !== null || this.signalCode !== null) return
    this.exitCode = exitCode
    this.signalCode = signal
    this.#letGo()
    this.emit('exit', exitCode, signal)
    this.#close()
  }

  /** bubblewrap holds both until it ends. */
  #closeOne(): void {
    this.#open--
    if (this.#open === 0) this.#finish()
    this.#close()
  }

  #close(): void {
    if (this.#open > 0 || this.#isClosed || (this.exitCode === null && this.signalCode === null)) return
    this.#isClosed = true
    this.emit('close', this.exitCode, this.signalCode)
  }

  #finish(): void {
    if (this.#isFinishing) return
    this.#isFinishing = true
    this.#supervisor.finish()
  }

  #kill(): void {
    if (this.exitCode !== null || this.signalCode !== null) return
    // When process number 1 is killed, bubblewrap ends after the last of the others. There is none while the walls go up.
    const { pid, start } = this.#inner ?? {}
    // A number that is another's by now is not killed.
    const isThere = pid !== undefined && start !== undefined && startOf(pid) === start
    if (!isThere || !killed(pid)) this.#supervisor.abort()
  }

  async #end(): Promise<void> {
    await Promise.all([this.#freed.promise, this.#gone()])
  }

  /**
   * bubblewrap does not wait for what a command leaves behind. That ends with process number 1, which ends with bubblewrap, and has ended itself
   * only when the last of the others has.
   */
  async #gone(): Promise<void> {
    const { pid, start } = this.#inner ?? {}
    if (pid === undefined || start === undefined) return
    const giveUp = performance.now() + longestEnd
    for (let looks = 0; startOf(pid) === start && performance.now() < giveUp; looks++) {
      await (looks < quickLooks ? setImmediate() : pause(1))
    }
  }

  #failure(exitCode: number | null, stderr: Uint8Array): RathError | undefined {
    const said = new TextDecoder().decode(stderr).trim()
    if (this.#isMissing) return notFound(this.#argv[0])
    if (this.#isStarted) return undefined
    if (this.#lost !== undefined && this.#inner !== undefined) {
      return new RathError(
        'sandbox-failed',
        `The command was ended with the process that had started it: ${this.#lost || 'that one was killed from outside, or used up the memory of the sandbox'}. Run it again.`,
        { data: { exitCode } },
      )
    }
    if (/: Argument list too long$/.test(said)) return startError({ code: 'E2BIG' }, this.#argv[0])
    return notStarted(this.#lost || said, exitCode)
  }
}

function reader(path: string): Socket {
  return new Socket({ fd: openPipe(path, constants.O_RDONLY), readable: true, writable: false })
}

/** Not by a link, and nothing else than a pipe. A pipe is open for reading before anybody writes to it, and has its end when all who did are gone. */
function openPipe(path: string, how: number): number {
  const fd = openSync(path, how | constants.O_NONBLOCK | constants.O_NOFOLLOW)
  if (fstatSync(fd).isFIFO()) return fd
  closeSync(fd)
  throw new RathError('sandbox-failed', `${path} is not a pipe any more; open another sandbox.`)
}

function unlink(path: string): void {
  try {
    unlinkSync(path)
  } catch {
    // With the folder, when the sandbox closes.
  }
}

function killed(pid: number): boolean {
  try {
    return process.kill(pid, 'SIGKILL')
  } catch {
    return false
  }
}
