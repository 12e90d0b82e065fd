import { spawn } from 'node:child_process'
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Session } from '../../src/session/session.ts'
import { checkPolicy, policy } from '../../src/tool/policy/policy.ts'

/**
 * A folder in which command lines are run by the shells of this machine. Two programs are harmless, `ls` and `cat`; whatever else runs, or takes the
 * place of those two, leaves a mark. All builtins are allowed, so that a line has to be caught for what it does and not for its first word.
 */
export class ShellLab implements Disposable {
  readonly folder = mkdtempSync(join(tmpdir(), 'openrath-shells-'))
  readonly work = join(this.folder, 'work')
  readonly shells: readonly (readonly string[])[]
  readonly #bin = join(this.folder, 'bin')
  readonly #marks = join(this.folder, 'marks')
  #count = 0

  constructor() {
    for (const path of [this.work, this.#bin, this.#marks]) mkdirSync(path)
    program(join(this.#bin, 'ls'), 'echo "x $*"')
    symlinkSync('/bin/cat', join(this.#bin, 'cat'))
    program(join(this.#bin, 'evil'), this.#mark('evil'))
    // Found when PATH, or the folder that a relative path starts from, is another than it was. `%n` of printf makes it a number.
    for (const place of ['.', '1', '2', '3', 'sub', 'bin'])
      for (const name of ['ls', 'cat', 'evil', 'build']) {
        mkdirSync(join(this.work, place), { recursive: true })
        program(
          join(this.work, place, name),
          place === '.' && name === 'build' ? 'echo built' : this.#mark(`${place}/${name}`),
        )
      }
    for (const name of [
      'env',
      'xargs',
      'find',
      'timeout',
      'nice',
      'nohup',
      'sh',
      'bash',
      'dash',
      'busybox',
    ]) {
      const path = found(name)
      if (path) symlinkSync(path, join(this.#bin, name))
    }
    const shells = [['dash'], ['bash'], ['bash', '--posix'], ['busybox', 'sh']]
    this.shells = shells.flatMap(([name = '', ...args]) => {
      const path = found(name)
      return path ? [[path, ...args]] : []
    })
  }

  /** Every shell in which the line, unchecked, ran something else than `ls` and `cat`, with what that was. */
  async attack(line: string): Promise<string[]> {
    const before = this.#files()
    const found = await Promise.all(this.shells.map(shell => this.#run(shell, line)))
    for (const file of this.#files()) {
      if (before.includes(file)) continue
      found.push(`wrote ${file}`)
      rmSync(join(this.work, file), { recursive: true })
    }
    return found.filter(what => what !== undefined)
  }

  [Symbol.dispose](): void {
    rmSync(this.folder, { recursive: true, force: true })
  }

  async #run(shell: readonly string[], line: string): Promise<string | undefined> {
    const id = String(this.#count++)
    const [program = '', ...args] = shell
    const child = spawn(program, [...args, '-c', line], {
      cwd: this.work,
      env: { PATH: this.#bin, HOME: this.work, MARK: join(this.#marks, id) },
      stdio: ['ignore', 'ignore', 'ignore'],
      detached: true,
    })
    // A loop that never ends is no bypass. The whole group goes, with whatever it started.
    const timer = setTimeout(() => kill(child.pid), 5000)
    await new Promise(resolve => child.on('close', resolve).on('error', resolve))
    clearTimeout(timer)
    kill(child.pid)
    const marks = readdirSync(this.#marks).filter(name => name.startsWith(`${id}-`))
    for (const mark of marks) rmSync(join(this.#marks, mark))
    return marks.length === 0
      ? undefined
      : `${shell.join(' ')} ran ${marks.map(mark => mark.slice(id.length + 1)).join(', ')}`
  }

  #files(): string[] {
    return readdirSync(this.work)
  }

  #mark(what: string): string {
    return `: > "$MARK-${what.replaceAll('/', '~')}"`
  }
}

function found(name: string): string | undefined {
  return ['/bin', '/usr/bin', '/usr/local/bin', '/opt/homebrew/bin']
    .map(place => join(place, name))
    .find(path => existsSync(path))
}

function program(path: string, body: string): void {
  writeFileSync(path, `#!/bin/sh\n${body}\n`)
  chmodSync(path, 0o755)
}

function kill(pid: number | undefined): void {
  try {
    if (pid !== undefined) process.kill(-pid, 'SIGKILL')
  } catch {
    // It has ended.
  }
}

/** Everything a shell has built in, and two programs. */
export const allowed = (
  'ls cat echo read printf test [ set unset export readonly local declare typeset getopts mapfile readarray wait jobs true false : cd pushd ' +
  'popd pwd trap eval exec command builtin env xargs find sh bash dash shift type times umask exit return break continue let shopt alias hash ' +
  'enable source . select coproc time function history bind nohup nice timeout busybox ./build'
).split(' ')

const rules = policy({ commands: [{ tool: 'sh', allow: allowed }] })
const session = Session.fromUserMessage('Go.').to('local', '.')

/** Why an allow-list of the above refuses a line; undefined when it lets it pass. */
export async function refusalOf(line: string): Promise<string | undefined> {
  const verdict = await checkPolicy(rules, { tool: 'sh', args: { cmd: line } }, { session })
  return verdict.kind === 'deny' ? verdict.reason : undefined
}
