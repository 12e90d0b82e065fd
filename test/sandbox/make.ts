import { existsSync, mkdtempSync, readFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { removeFolderSync } from '../../src/sandbox/host/remove-folder.ts'
import type { ExecResult } from '../../src/sandbox/spec.ts'

/** A folder of its own, gone when disposed of. */
export function temporaryFolder(): Disposable & { readonly path: string } {
  const path = mkdtempSync(join(tmpdir(), 'openrath-test-'))
  return { path, [Symbol.dispose]: () => removeFolderSync(path) }
}

export const out = ({ stdout }: ExecResult): string => new TextDecoder().decode(stdout)

/** True while a process runs; one that only waits to be collected does not. */
export function isRunning(pid: number): boolean {
  if (!existsSync(`/proc/${pid}/stat`)) return false
  try {
    return !/\) Z /.test(readFileSync(`/proc/${pid}/stat`, 'latin1'))
  } catch {
    return false
  }
}
