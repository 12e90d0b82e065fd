import { lstatSync, mkdirSync, mkdtempSync, readdirSync, statSync } from 'node:fs'
import { realpath } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { RathError, show } from '../../base/errors.ts'
import { stateOfMark, thisMark } from '../workspace/fork/owner.ts'
import { orNothing } from './or-nothing.ts'
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

/** A new folder that only this user may enter. The mark of this process in its name says whose leftovers it is. */
export async function newFolder(base: string): Promise<string> {
  return realpath(mkdtempSync(join(base, `openrath-${await thisMark()}-`)))
}

/** Such folders of this user whose processes have ended without removing them. */
export async function leftFolders(base: string): Promise<readonly string[]> {
  const left: string[] = []
  for (const name of readdirSync(base).sort()) {
    const [, mark] = /^openrath-(\d+-[0-9a-f]{16})-\w{6}$/.exec(name) ?? []
    if (mark === undefined || !isOwn(join(base, name))) continue
    if ((await stateOfMark(mark)) === 'gone') left.push(join(base, name))
  }
  return left
}

function isOwn(path: string): boolean {
  const found = lstatSync(path, orNothing)
  return found?.isDirectory() === true && found.uid === process.getuid?.()
}
