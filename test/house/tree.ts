import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'

/** The repository's root. */
export const root = dirname(dirname(import.meta.dirname))

export function read(path: string): string {
  return readFileSync(join(root, path), 'utf8')
}

/** Paths of the files under a folder of the repository, relative to that folder, sorted. */
export function filesUnder(folder: string, ending = ''): string[] {
  return readdirSync(join(root, folder), { recursive: true, withFileTypes: true })
    .filter(entry => entry.isFile() && entry.name.endsWith(ending))
    .map(entry => join(entry.parentPath, entry.name).slice(join(root, folder).length + 1))
    .sort()
}
