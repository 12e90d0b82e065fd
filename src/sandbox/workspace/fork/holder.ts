import type { ChildProcessByStdio } from 'node:child_process'
import { existsSync } from 'node:fs'
import type { Readable, Writable } from 'node:stream'
import { newId } from '../../../base/ids.ts'
import { startSystem, systemProgram } from '../../../base/programs.ts'

/**
 * A shell in a mount namespace of its own. What is mounted there is seen by nobody else, and goes when the shell does: it reads its
 * commands from a pipe of this process and ends with the pipe, also when this process is killed.
 */
export class Holder {
  readonly #shell: Shell
  readonly #mark = newId()
  readonly #waiting: Waiting[] = []
  readonly #ended: Promise<void>
  #output = ''
  #errors = ''
  #alive = true

  /** Its working folder is `folder`, so that mounts can name what lies in it by short names. */
  static async start(folder: string): Promise<Holder> {
    const holder = new Holder(folder)
    await holder.run(':')
    return holder
  }

  private constructor(folder: string) {
    // The newer call takes no more than 255 bytes for the list of layers.
    const env = { LIBMOUNT_FORCE_MOUNT2: 'always' }
    // A group of its own: an interrupt from the terminal is for this process, which may still need the files.
    this.#shell = startSystem('unshare', [...namespaces(), '--', systemProgram('sh')], {
      cwd: folder,
      env,
      stdio: 'pipe',
      detached: true,
    }) as Shell
    this.#ended = new Promise(resolve => {
      const end = (problem: string) => {
        this.#alive = false
        resolve()
        for (const { reject } of this.#waiting.splice(0)) reject(new Error(problem))
      }
      this.#shell.on('error', error => end(`unshare cannot be started: ${error.message}`))
      this.#shell.on('close', () => end(this.#errors.trim() || 'the process that holds the mounts has ended'))
    })
    this.#shell.stdin.on('error', () => {})
    this.#shell.stderr.setEncoding('utf8').on('data', (text: string) => {
      this.#errors = (this.#errors + text).slice(-2000)
    })
    this.#shell.stdout.setEncoding('utf8').on('data', (text: string) => this.#answer(text))
    this.#keepAwake(false)
  }

  get alive(): boolean {
    // The system knows that it has ended before this process is told.
    return this.#alive && existsSync(this.view('/'))
  }

  /** Put before a command that is to see the mounts. It runs as the same user as this process. */
  get enter(): readonly string[] {
    const target = ['--target', String(this.#shell.pid), '--mount']
    if (isRoot()) return [systemProgram('nsenter'), ...target, '--']
    // The holder's namespace knows us as root, which is what `mount` insists on; commands are to see who they really are.
    const user = [`--map-user=${process.getuid?.()}`, `--map-group=${process.getgid?.()}`]
    const inner = [systemProgram('unshare'), '--user', ...user, '--']
    return [systemProgram('nsenter'), ...target, '--user', '--preserve-credentials', '--', ...inner]
  }

  /**
   * Where this process sees what the holder has at an absolute path. It leads through a link of the kernel that `readlink` and `realpath`
   * answer wrongly: they say the same path on this side, where nothing is.
   */
  view(path: string): string {
    return `/proc/${this.#shell.pid}/root${path}`
  }

  /** Runs a command line of the shell; one that fails rejects with what it said. One after the other. */
  run(script: string): Promise<void> {
    if (!this.alive) return Promise.reject(new Error('the process that holds the mounts has ended'))
    return new Promise((resolve, reject) => {
      this.#waiting.push({ resolve, reject })
      this.#keepAwake(true)
      this.#shell.stdin.write(`{ ${script}\n} </dev/null 2>&1; echo "${this.#mark} $?"\n`)
    })
  }

  async close(): Promise<void> {
    this.#shell.stdin.end()
    this.#keepAwake(true)
    await this.#ended
  }

  abandon(): void {
    this.#shell.kill('SIGKILL')
  }

  #answer(text: string): void {
    this.#output += text
    for (;;) {
      const at = this.#output.indexOf(this.#mark)
      const end = this.#output.indexOf('\n', at)
      if (at < 0 || end < 0) return
      const said = this.#output.slice(0, at).trim()
      const code = this.#output.slice(at + this.#mark.length, end).trim()
      this.#output = this.#output.slice(end + 1)
      const asked = this.#waiting.shift()
      if (this.#waiting.length === 0) this.#keepAwake(false)
      if (code === '0') asked?.resolve()
      else asked?.reject(new Error(said || `exit code ${code}`))
    }
  }

  /** This process may end while the holder lives, but not while an answer or its end is on its way. */
  #keepAwake(awake: boolean): void {
    const { stdin, stdout, stderr } = this.#shell
    for (const part of [this.#shell, stdin, stdout, stderr] as unknown as NodeJS.RefCounted[]) {
      if (awake) part.ref()
      else part.unref()
    }
  }
}

type Shell = ChildProcessByStdio<Writable, Readable, Readable>

interface Waiting {
  resolve(): void
  reject(error: Error): void
}

/** Text as one word of the shell. */
export function quote(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`
}

export function isRoot(): boolean {
  return process.getuid?.() === 0
}

/**
 * Root needs no user namespace: in one, files of other users would belong to nobody. No pid namespace either, since commands that enter
 * could then not be waited for. What others mount later is seen (`slave`); what is mounted here is not seen by others.
 */
function namespaces(): string[] {
  const mounts = ['--mount', '--propagation', 'slave']
  return isRoot() ? mounts : ['--user', '--map-root-user', ...mounts]
}
