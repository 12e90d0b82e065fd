import { type ErrorCode, RathError } from '../../../base/errors.ts'

/** SQLite's primary result codes that a caller can do something about, and what. */
const known: Readonly<Record<number, readonly [ErrorCode, string]>> = {
  5: [
    'store-busy',
    'is busy: another process has been writing for too long. Try again, or raise busyTimeout.',
  ],
  6: ['store-busy', 'is locked by another connection. Try again, or raise busyTimeout.'],
  8: ['store-read-only', 'cannot be written: make the file and its folder writable.'],
  10: [
    'store-failed',
    'could not be read or written by the operating system. Check the disk; what was acknowledged is kept.',
  ],
  11: [
    'store-corrupt',
    'is damaged. It was left as it is: restore a backup, or recover it with `sqlite3 FILE .recover`.',
  ],
  13: ['store-full', 'cannot grow: the disk or quota is full. Free some space and try again.'],
  14: ['store-failed', 'cannot be opened. Check that the path exists and may be read.'],
  26: [
    'store-corrupt',
    'is not a SQLite database, or is damaged. It was left as it is: choose another path, or restore a backup.',
  ],
}

/** What the file system says, by SQLite's codes, so that one table holds all the words. */
const systemCodes: Readonly<Record<string, number>> = {
  EROFS: 8,
  EACCES: 8,
  EPERM: 8,
  ENOSPC: 13,
  EDQUOT: 13,
  ENOTDIR: 14,
  EEXIST: 14,
  ENAMETOOLONG: 14,
  EISDIR: 14,
  ENOENT: 14,
}

export function isBusy(error: unknown): boolean {
  const code = primaryCode(error)
  return code === 5 || code === 6
}

/** SQLite's or the system's error in our words; anything else passes unchanged. */
export function toMemoryError(error: unknown, path: string): unknown {
  const code = primaryCode(error)
  if (code === undefined) return error
  const [name, text] = known[code] ?? ['store-failed', `failed: ${(error as Error).message}.`]
  return new RathError(name, `The memory ${path} ${text}`, { cause: error, data: { path, sqlite: code } })
}

export function corrupt(path: string, what: string): RathError {
  return new RathError(
    'store-corrupt',
    `The memory ${path} is damaged: ${what}. It was left as it is: restore a backup.`,
    {
      data: { path },
    },
  )
}

function primaryCode(error: unknown): number | undefined {
  const { code, errcode } = (error ?? {}) as { code?: string; errcode?: number }
  if (code === 'ERR_SQLITE_ERROR' && typeof errcode === 'number') return errcode & 0xff
  return systemCodes[code ?? '']
}
