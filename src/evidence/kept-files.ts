import { existsSync } from 'node:fs'
import { join } from 'node:path'
import type { Digest } from '../base/digest.ts'
import { RathError } from '../base/errors.ts'
import { Workspaces } from '../run/place/workspaces.ts'
import { ObjectStore } from '../sandbox/workspace/objects.ts'

/** Where the files of sessions are read from: an open store of objects, or the folder that a runtime keeps its workspaces in. */
export type KeptFiles = ObjectStore | string

/** Opens it for reading; nothing is made when it is not there. By default, where runtimes keep files on this machine. */
export async function openKeptFiles(files: KeptFiles = new Workspaces().folder): Promise<ObjectStore> {
  if (files instanceof ObjectStore) return files
  const folder = join(files, 'objects')
  if (existsSync(folder)) return ObjectStore.open(folder)
  throw new RathError(
    'unknown-blob',
    `There is no ${folder}: no files of sessions were kept here. Give the folder where they were, or set OPENRATH_HOME as it was then.`,
  )
}

export function checkKept(objects: ObjectStore, tree: Digest): void {
  if (objects.has(tree)) return
  throw new RathError(
    'unknown-blob',
    `The tree ${tree} is not in ${objects.path}. It was pruned, or kept on another machine or with another OPENRATH_HOME.`,
    { data: { id: tree } },
  )
}
