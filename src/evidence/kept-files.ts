import { existsSync } from 'node:fs'
import { join } from 'node:path'
import type { Digest } from '../base/digest.ts'
import { RathError } from '../base/errors.ts'
import { Workspaces } from '../run/place/workspaces.ts'
import { ObjectStore } from '../sandbox/workspace/objects.ts'

/**
 * Opens, for reading, the files that a runtime has kept in its folder `workspaces`; by default where runtimes of this machine keep them.
 * Nothing is made when it is not there.
 */
export async function openKeptFiles(workspaces = new Workspaces().folder): Promise<ObjectStore> {
  const folder = join(workspaces, 'objects')
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
