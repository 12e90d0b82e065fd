import { lstatSync, mkdirSync, mkdtempSync, readdirSync, statSync } from 'node:fs'
import { realpath } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { RathError, show } from '../../base/errors.ts'
import { markPattern, stateOf, thisMark } from '../../base/process.ts'
import { type LeftBy, projectOf } from '../workspace/fork/owner.ts'
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

/** A new folder that only this user may enter. The mark of this process and of its project in its name says whose leftovers it is. */
export async function newFolder(base: string): Promise<string> {
  return realpath(mkdtempSync(join(base, `openrath-${thisMark()}-${projectOf(process.cwd())}-`)))
}

/** Such folders of this user whose processes have ended without removing them; of one project, where it is given. */
export async function leftFolders(
  base: string,
  { project, olderThan = 0 }: LeftBy = {},
): Promise<readonly string[]> {
  const left: string[] = []
  for (const name of readdirSync(base).sort()) {
    const [, mark, of] = leftName.exec(name) ?? []
    if (mark === undefined || !isOwn(join(base, name), olderThan)) continue
    if (project !== undefined && of !== project) continue
    if (stateOf(mark) === 'gone') left.push(join(base, name))
  }
  return left
}

const leftName = new RegExp(`^openrath-(${markPattern})(?:-([0-9a-f]{8}))?-\\w{6}$`)

function isOwn(path: string, olderThan: number): boolean {
  const found = lstatSync(path, orNothing)
  if (found === undefined || found.mtimeMs > Date.now() - olderThan) return false
  return found.isDirectory() && found.uid === process.getuid?.()
}
