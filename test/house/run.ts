import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { root } from './tree.ts'

export interface Ended {
  readonly status: number
  readonly stdout: string
  readonly stderr: string
}

/**
 * Runs a program in the repository's root and waits for it. Colours are off, so that output compares as text, and it finds no key
 * and no config file of yours: what it prints does not depend on them, and nobody is billed.
 */
export function run(command: string, ...args: string[]): Ended {
  const options = { cwd: root, encoding: 'utf8', env: withoutKeys() } as const
  const { status, stdout, stderr, error } = spawnSync(command, args, options)
  if (error) throw error
  return { status: status ?? -1, stdout, stderr }
}

/** The same beside others, and with what is added to its environment. */
export async function start(
  [command, ...args]: readonly [string, ...string[]],
  added: NodeJS.ProcessEnv = {},
): Promise<Ended> {
  const child = spawn(command, args, { cwd: root, env: { ...withoutKeys(), ...added } })
  const closed = once(child, 'close') as Promise<[number | null]>
  const [stdout, stderr, [status]] = await Promise.all([text(child.stdout), text(child.stderr), closed])
  return { status: status ?? -1, stdout, stderr }
}

/** The environment of such a program. */
function withoutKeys(): NodeJS.ProcessEnv {
  const env: NodeJS.ProcessEnv = { ...process.env, NO_COLOR: '1', OPENRATH_HOME: noHome }
  for (const name of Object.keys(env)) {
    if (/^(FORCE_COLOR$|OPENAI_|ANTHROPIC_|AZURE_)/.test(name)) delete env[name]
  }
  return env
}

/** An empty folder. What programs keep there goes with the process that ran them. */
const noHome = mkdtempSync(join(tmpdir(), 'openrath-home-'))
process.once('exit', () => rmSync(noHome, { recursive: true, force: true }))

/** Runs a TypeScript program against the built package. */
export function runProgram(code: string): Ended {
  return run(process.execPath, '--input-type=module-typescript', '--eval', code)
}
