import { spawnSync } from 'node:child_process'
import { root } from './tree.ts'

/** Runs a program in the repository's root and waits for it. Colours are off, so that output compares as text. */
export function run(command: string, ...args: string[]): { status: number; stdout: string; stderr: string } {
  const { FORCE_COLOR: _, ...environment } = process.env
  const env = { ...environment, NO_COLOR: '1' }
  const { status, stdout, stderr, error } = spawnSync(command, args, { cwd: root, encoding: 'utf8', env })
  if (error) throw error
  return { status: status ?? -1, stdout, stderr }
}

/** Runs a TypeScript program against the built package. */
export function runProgram(code: string): { status: number; stdout: string; stderr: string } {
  return run(process.execPath, '--input-type=module-typescript', '--eval', code)
}
