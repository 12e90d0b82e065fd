import { lstat, rename } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { copyFolder } from './copy-folder.ts'
import { removeFolder } from './remove-folder.ts'
import { temporaryName } from './temporary-name.ts'

/**
 * `rename`, also for a folder of the base of an overlay, which Linux refuses with EXDEV. That one is copied beside its new name, takes the name
 * at once, and the old one is then removed; `mv` does much the same for commands.
 */
export async function move(from: string, to: string): Promise<void> {
  try {
    await rename(from, to)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EXDEV' || !(await lstat(from)).isDirectory()) throw error
    const copied = join(dirname(to), temporaryName(basename(to)))
    try {
      await copyFolder(from, copied)
      await rename(copied, to)
    } catch (problem) {
      await removeFolder(copied)
      throw problem
    }
    await removeFolder(from)
  }
}
