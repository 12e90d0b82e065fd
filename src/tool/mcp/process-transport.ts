import type { ChildProcessByStdio } from 'node:child_process'
import type { Readable, Writable } from 'node:stream'
import type { JSONRPCMessage, Transport } from '@modelcontextprotocol/client'
import { killGroup, platformOf } from '../../base/platform.ts'
import { startGiven, trustedPath } from '../../base/programs.ts'
import type { LaunchServer, McpProgram, StartedServer } from './server.ts'

type Sdk = typeof import('@modelcontextprotocol/client')
type Child = ChildProcessByStdio<Writable, Readable, Readable>

/** Bytes of one message. The SDK's own 10 MB is less than an honest file tool can return. */
const largestMessage = 256 * 1024 * 1024
const keptWords = 2000
/** How long a server may take to end by itself once its input is closed, and then once it is told to. */
const graceMs = 500

/**
 * The SDK's transport, but in a process group of its own: a server that starts others (npx, shells, browsers) takes them
 * with it when it goes.
 */
export class ProcessTransport implements Transport {
  onclose?: () => void
  onerror?: (error: Error) => void
  onmessage?: NonNullable<Transport['onmessage']>
  readonly #program: McpProgram
  readonly #launch: LaunchServer
  readonly #sdk: Sdk
  readonly #buffer: InstanceType<Sdk['ReadBuffer']>
  /** A line that has not ended: read with its end, since to look for that in all of it again with every piece takes for ever. */
  #pieces: Buffer[] = []
  #pieced = 0
  #child: Child | undefined
  #kill: StartedServer['kill'] = () => {}
  #ended: Promise<void> = Promise.resolve()
  #isOver = false
  #isDelivering = false
  #words = ''
  #exit = ''

  constructor(program: McpProgram, sdk: Sdk, launch: LaunchServer = launchGroup) {
    this.#program = program
    this.#launch = launch
    this.#sdk = sdk
    this.#buffer = new sdk.ReadBuffer({ maxBufferSize: largestMessage })
  }

  /** How the server ended and the end of what it wrote to its standard error; empty while it runs in silence. */
  get lastWords(): string {
    return [this.#exit, this.#words.trim()].filter(text => text !== '').join(': ')
  }

  async start(): Promise<void> {
    const { child: started, kill } = await this.#launch(this.#program)
    const child = started as Child
    this.#child = child
    this.#kill = kill
    child.stdout.on('data', (data: Buffer) => this.#receive(data))
    child.stderr.on('data', (data: Buffer) => {
      this.#words = (this.#words + data.toString()).slice(-keptWords)
    })
    for (const stream of [child.stdin, child.stdout, child.stderr]) {
      stream.on('error', error => this.onerror?.(error))
    }
    this.#ended = this.#watch(child)
    await new Promise<void>((resolve, reject) => {
      if (child.pid !== undefined) resolve()
      child.once('error', reject)
    })
  }

  send(message: JSONRPCMessage): Promise<void> {
    const input = this.#child?.stdin
    if (!input?.writable) return Promise.reject(new Error('The server is not running.'))
    return new Promise((resolve, reject) => {
      input.write(this.#sdk.serializeMessage(message), error => (error ? reject(error) : resolve()))
    })
  }

  /** Asks the server to end, then makes it. Resolves when it is gone, with everything it started. */
  async close(): Promise<void> {
    const child = this.#child
    if (!child || this.#isOver) return this.#ended
    child.stdin.end()
    const timers = [
      setTimeout(() => this.#kill('SIGTERM'), graceMs),
      setTimeout(() => this.#kill('SIGKILL'), 2 * graceMs),
    ]
    await this.#ended
    for (const timer of timers) clearTimeout(timer)
  }

  #watch(child: Child): Promise<void> {
    return new Promise(resolve => {
      let timer: NodeJS.Timeout | undefined
      const over = () => {
        if (this.#isOver) return
        this.#isOver = true
        clearTimeout(timer)
        for (const stream of [child.stdin, child.stdout, child.stderr]) stream.destroy()
        this.#buffer.clear()
        this.#pieces = []
        this.onclose?.()
        resolve()
      }
      child.once('exit', (code, signal) => {
        this.#exit = signal === null ? `exit code ${code}` : `ended by ${signal}`
        // What it started must not outlive it. The group's number is free for others once all of it is gone, so: at once.
        this.#kill('SIGKILL')
        // Somebody who left the group may hold the pipes open.
        timer = setTimeout(over, graceMs)
      })
      child.once('close', over)
      child.once('error', over)
    })
  }

  #receive(data: Buffer): void {
    this.#pieces.push(data)
    this.#pieced += data.length
    if (!data.includes('\n') && this.#pieced <= largestMessage) return
    const lines = Buffer.concat(this.#pieces)
    this.#pieces = []
    this.#pieced = 0
    try {
      this.#buffer.append(lines)
    } catch (error) {
      this.onerror?.(error as Error)
      this.#kill('SIGKILL')
      return
    }
    void this.#deliver()
  }

  /** Hands over what has arrived, all within this turn of the event loop, so that an end of the stream comes after it. */
  async #deliver(): Promise<void> {
    if (this.#isDelivering) return
    this.#isDelivering = true
    for (;;) {
      try {
        const message = this.#buffer.readMessage()
        if (message === null) break
        this.onmessage?.(message)
        // The SDK hears notifications a moment later than answers: the last progress of a call would be lost to its answer.
        if (!('id' in message)) for (let i = 0; i < 4; i++) await null
      } catch (error) {
        // A line that is no message: servers print logs where they should not.
        this.onerror?.(error as Error)
      }
    }
    this.#isDelivering = false
  }
}

/** Starts a server in a process group of its own. */
const launchGroup: LaunchServer = async ({ command, args = [], env, cwd }) => {
  const child = startGiven(command, args, {
    cwd,
    env: { ...cleanEnvironment(), ...env },
    stdio: ['pipe', 'pipe', 'pipe'],
    detached: platformOf().processGroups,
    windowsHide: true,
  }) as Child
  child.once('spawn', () => openGroups.add(child)).once('exit', () => openGroups.delete(child))
  return { child, kill: signal => killAll(child, signal) }
}

/** What programs need to find their way around, and nothing that could be a secret. */
function cleanEnvironment(): Record<string, string> {
  const kept =
    /^(PATH|HOME|USER|LOGNAME|SHELL|TERM|LANG|LC_\w+|TZ|TMPDIR|TEMP|TMP|SYSTEMROOT|WINDIR|COMSPEC|PATHEXT|APPDATA|LOCALAPPDATA|USERPROFILE|HOMEDRIVE|HOMEPATH|PROGRAMFILES|PROGRAMDATA)$/i
  const clean: Record<string, string> = {}
  for (const [name, value] of Object.entries(process.env)) {
    if (value !== undefined && kept.test(name)) clean[name] = /^path$/i.test(name) ? trustedPath() : value
  }
  return clean
}

/** Servers running now. A group of its own is not stopped with ours, so the end of this process has to see to it. */
const openGroups = {
  children: new Set<Child>(),
  killAll: () => {
    for (const child of openGroups.children) killAll(child, 'SIGKILL')
  },
  add(child: Child) {
    if (this.children.size === 0) process.on('exit', this.killAll)
    this.children.add(child)
  },
  delete(child: Child) {
    this.children.delete(child)
    if (this.children.size === 0) process.off('exit', this.killAll)
  },
}

function killAll(child: Child, signal: 'SIGTERM' | 'SIGKILL'): void {
  if (child.pid !== undefined) killGroup(child.pid, signal)
}
