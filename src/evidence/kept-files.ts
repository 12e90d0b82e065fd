import { existsSync } from 'node:fs'
import { join } from 'node:path'
import type { Digest } from '../base/digest.ts'
import { RathError } from '../base/errors.ts'
import { SentFiles } from '../run/place/sent-files.ts'
import { Workspaces } from '../run/place/workspaces.ts'
import { ObjectStore } from '../sandbox/workspace/objects.ts'
import type { Chunk } from '../session/chunk.ts'
import { packsNamed } from '../session/fold.ts'
import type { Session } from '../session/session.ts'
import type { Store } from '../store/spec.ts'

/**
 * Opens, for reading, the files that a runtime has kept in its folder `workspaces`; by default where runtimes of this machine keep them.
 * Nothing is made when it is not there.
 */
export async function openKeptFiles(workspaces = new Workspaces().folder): Promise<ObjectStore> {
  const folder = join(workspaces, 'objects')
  if (existsSync(folder)) return ObjectStore.open(folder)
  throw new RathError(
    'unknown-blob',
    `There is no ${folder}: no files of sessions were kept here, and the store has none of this session. Give the folder where they were, or set OPENRATH_HOME as it was then.`,
  )
}

/** Fetches what the store has of a session's files and this machine has not. */
export async function bringFiles(
  session: Session,
  store: Store | undefined,
  workspaces?: string,
): Promise<void> {
  if (store === undefined) return
  const kept = new Workspaces(workspaces)
  const sent = new SentFiles(
    async () => store,
    () => kept.objects,
    kept.folder,
  )
  try {
    for (const chunk of session.chunks) {
      const packs = packsNamed(chunk)
      if (packs.length === 0) continue
      const { tree, before } = chunk as Chunk<'tool-result'>
      const trees = [tree, before].filter(one => one !== undefined)
      // What is not in this store either is told by whoever needs it.
      await sent.bring(trees, packs).catch(error => {
        if (!(error instanceof RathError) || error.code !== 'unknown-blob') throw error
      })
    }
  } finally {
    await kept.close()
  }
}

export function checkKept(objects: ObjectStore, tree: Digest): void {
  if (objects.has(tree)) return
  throw new RathError(
    'unknown-blob',
    `The tree ${tree} is not in ${objects.path}. It was pruned, or kept on another machine or with another OPENRATH_HOME.`,
    { data: { id: tree } },
  )
}
