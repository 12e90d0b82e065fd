import { inWords, type Words } from '../../../base/sqlite/errors.ts'

const words: Words = {
  8: [
    'store-read-only',
    'cannot be written: make the file and its folder writable, or open it with readOnly.',
  ],
  13: [
    'store-full',
    'cannot grow: the disk or quota is full. Free some space and try again; what was acknowledged is kept.',
  ],
}

/** SQLite's or the system's error in our words; anything else passes unchanged. */
export function toStoreError(error: unknown, path: string): unknown {
  return inWords(error, 'The store', path, words)
}
