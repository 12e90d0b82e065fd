import { readFileSync, realpathSync, statSync } from 'node:fs'
import { homedir } from 'node:os'
import { platformOf } from '../base/platform.ts'

/** What is read of the machine to find models and keys. */
export interface Surroundings {
  readonly env: Readonly<Record<string, string | undefined>>
  readonly cwd: string
  readonly home: string
  readonly files: Files
  /** Told about something unsafe that was let through. */
  warn(message: string): void
}

export interface Files {
  /** The text of a file; nothing when there is none. */
  read(path: string): string | undefined
  /** What lies at a path, and its permission bits where the system has such; nothing when there is nothing. */
  stat(path: string): { readonly isDirectory: boolean; readonly mode?: number } | undefined
  /** A path without links; nothing when there is nothing. Where it is missing, paths are taken as they are. */
  real?(path: string): string | undefined
}

/** The surroundings of this process. */
export function processSurroundings(): Surroundings {
  return {
    env: process.env,
    cwd: process.cwd(),
    home: homedir(),
    files: nodeFiles,
    warn: message => process.emitWarning(message, { code: 'OPENRATH_CONFIG' }),
  }
}

const nodeFiles: Files = {
  real: path => orNothing(() => realpathSync(path)),
  read: path => orNothing(() => readFileSync(path, 'utf8')),
  stat: path =>
    orNothing(() => {
      const stat = statSync(path)
      return {
        isDirectory: stat.isDirectory(),
        ...(platformOf().modes && { mode: stat.mode & 0o777 }),
      }
    }),
}

function orNothing<T>(look: () => T): T | undefined {
  try {
    return look()
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'ENOENT' || code === 'ENOTDIR') return undefined
    throw error
  }
}
