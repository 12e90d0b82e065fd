import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { onTestFinished } from 'vitest'
import type { Session } from '../../src/session/session.ts'

const root = dirname(dirname(import.meta.dirname))
/** The built package; another one, such as an unpacked `npm pack`, with RATH_PACKAGE. */
const home = process.env.RATH_PACKAGE ?? root
export const entry = join(home, 'dist/cli/main.js')

export interface Ended {
  readonly status: number
  readonly stdout: string
  readonly stderr: string
}

/** A folder in which `rath` is used as a person would, gone when the test is over. */
export class Project {
  readonly folder: string
  /** Beside it: what is kept of files must not lie among them. */
  readonly home: string

  constructor(files: Readonly<Record<string, string>> = {}) {
    this.folder = mkdtempSync(join(tmpdir(), 'rath-cli-'))
    this.home = mkdtempSync(join(tmpdir(), 'rath-home-'))
    onTestFinished(() => {
      for (const made of [this.folder, this.home]) rmSync(made, { recursive: true, force: true })
    })
    for (const [name, text] of Object.entries(files)) this.write(name, text)
    this.link('.')
  }

  /** Installs the package in a folder of it. */
  link(folder: string): void {
    mkdirSync(join(this.folder, folder, 'node_modules'), { recursive: true })
    symlinkSync(home, join(this.folder, folder, 'node_modules/openrath'))
  }

  write(name: string, text: string): void {
    mkdirSync(dirname(join(this.folder, name)), { recursive: true })
    writeFileSync(join(this.folder, name), text)
  }

  read(name: string): string {
    return readFileSync(join(this.folder, name), 'utf8')
  }

  /** No key and no config of yours is found, and nothing of yours is written to. */
  get env(): NodeJS.ProcessEnv {
    const env: NodeJS.ProcessEnv = { ...process.env, OPENRATH_HOME: this.home }
    for (const name of Object.keys(env)) {
      if (/^(FORCE_COLOR|NO_COLOR|OPENRATH_STORE|DOCKER_HOST)$|^(OPENAI|ANTHROPIC|AZURE|OPEN_)/.test(name))
        delete env[name]
    }
    return env
  }

  rath(...args: string[]): Ended {
    return this.run({ args })
  }

  run({
    args,
    ...options
  }: {
    args: string[]
    input?: string
    cwd?: string
    env?: NodeJS.ProcessEnv
  }): Ended {
    return this.#spawn(process.execPath, [entry, ...args], options)
  }

  /** Another program in the same surroundings. */
  program(command: string, ...args: string[]): Ended {
    return this.#spawn(command, args, {})
  }

  /** Brings a session into the store, as a file of it would come; gives its id. */
  keep(session: Session): string {
    this.write('session.jsonl', session.toJSONL())
    const { status, stderr } = this.rath('import', 'session.jsonl')
    if (status !== 0) throw new Error(stderr)
    return session.id
  }

  /** What a command prints with --json; fails when it does not end as expected. */
  json<T>(args: string[], status = 0): T {
    const end = args.includes('--') ? args.indexOf('--') : args.length
    const ended = this.rath(...args.toSpliced(end, 0, '--json'))
    if (ended.status !== status)
      throw new Error(`rath ${args.join(' ')} ended with ${ended.status}: ${ended.stderr}`)
    return JSON.parse(ended.stdout)
  }

  /**
   * The same on a terminal: waits for a text, types what belongs to it, and so on; gives everything that was on the screen. `^C` and `^D`
   * are keys.
   */
  terminal(
    args: string[],
    steps: readonly (readonly [expect: string, type: string])[],
    env: NodeJS.ProcessEnv = {},
  ): { status: number; screen: string } {
    return this.onTerminal([process.execPath, entry, ...args], steps, env)
  }

  /** Another program on a terminal, by its whole path. */
  onTerminal(
    argv: readonly string[],
    steps: readonly (readonly [expect: string, type: string])[],
    env: NodeJS.ProcessEnv = {},
  ): { status: number; screen: string } {
    const typed = steps.map(([expect, type]) => [
      expect,
      type.replace('^C', '\u0003').replace('^D', '\u0004'),
    ])
    const script = join(import.meta.dirname, 'terminal.py')
    const { status, stdout, stderr, error } = spawnSync('python3', [script, JSON.stringify(typed), ...argv], {
      cwd: this.folder,
      env: { ...this.env, TERM: 'xterm-256color', ...env },
      encoding: 'utf8',
    })
    if (error) throw error
    if (stderr) throw new Error(`${stderr}\n${stdout}`)
    return { status: status ?? -1, screen: stdout }
  }

  #spawn(
    command: string,
    args: readonly string[],
    { input = '', cwd = '.', env = {} }: { input?: string; cwd?: string; env?: NodeJS.ProcessEnv },
  ): Ended {
    const options = {
      cwd: join(this.folder, cwd),
      env: { ...this.env, ...env },
      input,
      encoding: 'utf8' as const,
    }
    const { status, stdout, stderr, error } = spawnSync(command, args, options)
    if (error) throw error
    return { status: status ?? -1, stdout, stderr }
  }
}

/** Text without colours and without what was drawn over. */
export function visible(screen: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is taken out.
  return screen.replace(/\u001b\[[0-9;?]*[A-Za-z]/g, '').replaceAll('\r', '')
}

export const greeter = `import { Agent, type Session, tool, Workflow } from 'openrath'
import { scripted } from 'openrath/testing'

const send = tool({
  name: 'send',
  description: 'Sends a letter.',
  input: { type: 'object', properties: { to: { type: 'string' } } },
  approval: true,
  run: ({ to }: { to: string }) => \`sent to \${to}\`,
})
const model = scripted(({ messages }) => {
  const last = messages.at(-1)
  if (last?.role === 'tool') return \`The tool said \${JSON.stringify(last.outcome)}.\`
  const asked = JSON.stringify(last)
  if (asked.includes('fail')) return { error: { status: 401, message: 'no' } }
  if (asked.includes('wait')) return { text: 'late', delayMs: 600_000 }
  return asked.includes('send') ? { text: 'I shall.', toolCalls: [{ name: 'send', args: { to: 'Ada' } }] } : 'Hello.'
})
export class Greeter extends Workflow {
  agent = new Agent('Greet.', { model, tools: [send] })
  forward(session: Session) {
    return this.agent(session)
  }
}
export default new Agent('Greet.', { model, tools: [send], name: 'greeter' })
export const number = 7
`
