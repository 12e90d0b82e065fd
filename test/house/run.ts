import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { root } from './tree.ts'

/**
 * Runs a program in the repository's root and waits for it. Colours are off, so that output compares as text, and it finds no key
 * and no config file of yours: what it prints does not depend on them, and nobody is billed.
 */
export function run(command: string, ...args: string[]): { status: number; stdout: string; stderr: string } {
  const env: NodeJS.ProcessEnv = { ...process.env, NO_COLOR: '1', OPENRATH_HOME: noHome }
  for (const name of Object.keys(env)) {
    if (/^(FORCE_COLOR$|OPENAI_|ANTHROPIC_|AZURE_)/.test(name)) delete env[name]
  }
  const { status, stdout, stderr, error } = spawnSync(command, args, { cwd: root, encoding: 'utf8', env })
  if (error) throw error
  return { status: status ?? -1, stdout, stderr }
}

/** An empty folder. What programs keep there goes with the process that ran them. */
const noHome = mkdtempSync(join(tmpdir(), 'openrath-home-'))
process.once('exit', () => rmSync(noHome, { recursive: true, force: true }))

/** Runs a TypeScript program against the built package. */
export function runProgram(code: string): { status: number; stdout: string; stderr: string } {
  return run(process.execPath, '--input-type=module-typescript', '--eval', code)
}
