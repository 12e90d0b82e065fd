import { type ErrorCode, RathError } from '../errors.ts'

/** SQLite's primary result codes that a caller can do something about, and what. */
export type Words = Readonly<Record<number, readonly [ErrorCode, string]>>

const words: Words = {
  5: [
    'store-busy',
    'is busy: another process has been writing for too long. Try again, or raise busyTimeout.',
  ],
  6: ['store-busy', 'is locked by another connection. Try again, or raise busyTimeout.'],
  10: [
    'store-failed',
    'could not be read or written by the operating system. Check the disk; what was acknowledged is kept.',
  ],
  11: [
    'store-corrupt',
    'is damaged. It was left as it is: restore a backup, or recover it with `sqlite3 FILE .recover`.',
  ],
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

/** SQLite's or the system's error about a file, such as `The store a.db`, in our words and its `own`; anything else passes unchanged. */
export function inWords(error: unknown, what: string, path: string, own: Words): unknown {
  const code = primaryCode(error)
  if (code === undefined) return error
  const [name, text] = own[code] ?? words[code] ?? ['store-failed', `failed: ${(error as Error).message}.`]
  return new RathError(name, `${what} ${path} ${text}`, { cause: error, data: { path, sqlite: code } })
}

function primaryCode(error: unknown): number | undefined {
  const { code, errcode } = (error ?? {}) as { code?: string; errcode?: number }
  if (code === 'ERR_SQLITE_ERROR' && typeof errcode === 'number') return errcode & 0xff
  return systemCodes[code ?? '']
}
