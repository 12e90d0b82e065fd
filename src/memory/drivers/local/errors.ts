import { RathError } from '../../../base/errors.ts'
import { inWords, type Words } from '../../../base/sqlite/errors.ts'

const words: Words = {
  8: ['store-read-only', 'cannot be written: make the file and its folder writable.'],
  13: ['store-full', 'cannot grow: the disk or quota is full. Free some space and try again.'],
}

/** SQLite's or the system's error in our words; anything else passes unchanged. */
export function toMemoryError(error: unknown, path: string): unknown {
  return inWords(error, 'The memory', path, words)
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
