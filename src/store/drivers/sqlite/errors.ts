import { type ErrorCode, RathError } from '../../../base/errors.ts'

/** SQLite's primary result codes that a caller can do something about, and what. */
const known: Readonly<Record<number, readonly [ErrorCode, string]>> = {
  5: [
    'store-busy',
    'is busy: another process has been writing for too long. Try again, or raise busyTimeout.',
  ],
  6: ['store-busy', 'is locked by another connection. Try again, or raise busyTimeout.'],
  8: [
    'store-read-only',
    'cannot be written: make the file and its folder writable, or open it with readOnly.',
  ],
  10: [
    'store-failed',
    'could not be read or written by the operating system. Check the disk; what was acknowledged is kept.',
  ],
  11: [
    'store-corrupt',
    'is damaged. It was left as it is: restore a backup, or recover it with `sqlite3 FILE .recover`.',
  ],
  13: [
    'store-full',
    'cannot grow: the disk or quota is full. Free some space and try again; what was acknowledged is kept.',
  ],
  14: ['store-failed', 'cannot be opened. Check that the path exists and may be read.'],
  26: [
    'store-corrupt',
    'is not a SQLite database, or is damaged. It was left as it is: choose another path, or restore a backup.',
  ],
}

export function isBusy(error: unknown): boolean {
  const code = primaryCode(error)
  return code === 5 || code === 6
}

/** SQLite's error in our words; anything else passes unchanged. */
export function toStoreError(error: unknown, path: string): unknown {
  const code = primaryCode(error)
  if (code === undefined) return error
  const [name, text] = known[code] ?? ['store-failed', `failed: ${(error as Error).message}.`]
  return new RathError(name, `The store ${path} ${text}`, { cause: error, data: { path, sqlite: code } })
}

function primaryCode(error: unknown): number | undefined {
  const { code, errcode } = (error ?? {}) as { code?: string; errcode?: number }
  return code === 'ERR_SQLITE_ERROR' && typeof errcode === 'number' ? errcode & 0xff : undefined
}
