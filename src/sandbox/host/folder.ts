import { mkdirSync, mkdtempSync, statSync } from 'node:fs'
import { realpath } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { RathError, show } from '../../base/errors.ts'
import { pathError } from './paths.ts'

/** The folder a spec names, made if it is missing; its real path. */
export async function givenFolder(path: string): Promise<string> {
  const folder = resolve(path)
  try {
    mkdirSync(folder, { recursive: true })
    if (statSync(folder).isDirectory()) return await realpath(folder)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw pathError(error, path)
  }
  throw new RathError('path-kind', `${show(path)} is not a folder, and a sandbox works in one.`, {
    data: { path },
  })
}

/** A new folder that only this user may enter. The number of this process in its name says whose leftovers it is. */
export function newFolder(base: string): Promise<string> {
  return realpath(mkdtempSync(join(base, `openrath-${process.pid}-`)))
}
