import { existsSync, readdirSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import type { Digest } from '../../base/digest.ts'
import { Breath } from './breath.ts'
import { treesInUse } from './folder-state.ts'
import { looseFolders } from './loose.ts'
import type { ObjectStore } from './objects.ts'
import type { Pack } from './pack.ts'
import type { PackWriter } from './pack-writer.ts'
import { objectsBelow } from './tree.ts'

export interface PruneOptions {
  /** Milliseconds for which objects are left alone whoever needs them: somebody may just be writing a tree of them. Default an hour. */
  readonly olderThan?: number
  readonly now?: number
  readonly signal?: AbortSignal
}

export interface PruneReport {
  readonly kept: number
  /** Left alone for their age. */
  readonly young: number
  readonly removed: number
  /** Bytes on disk, before and after. */
  readonly before: number
  readonly after: number
}

/**
 * Removes what none of these trees needs, nor what is remembered of a folder that is still there, and puts what stays into one compressed pack. Safe
 * while others read and write. A tree that should be kept and is not whole is an error, and then nothing is removed. O(objects).
 */
export async function prune(
  objects: ObjectStore,
  keepTrees: Iterable<Digest>,
  options: PruneOptions = {},
): Promise<PruneReport> {
  const { olderThan = 3_600_000, now = Date.now() } = options
  const breath = new Breath(options.signal)
  const isOld = (path: string) => {
    const found = statSync(path, { throwIfNoEntry: false })
    return found !== undefined && found.mtimeMs <= now - olderThan
  }
  const needed = new Set<Digest>()
  const trees = [...keepTrees, ...treesInUse(objects).filter(tree => objects.has(tree))]
  for (const tree of trees) {
    for (const _ of objectsBelow(objects, tree, needed)) if (breath.due) await breath.take()
  }

  const before = diskUse(objects)
  const allPacks = objects.packs()
  const packs = allPacks.filter(pack => isOld(pack.path))
  const allLoose = looseFolders.flatMap(folder => objects.loose.list(folder))
  const loose = allLoose.filter(id => isOld(objects.loose.pathOf(id)))
  const old = new Set([...packs.flatMap(pack => pack.ids()), ...loose])
  const all = new Set([...allPacks.flatMap(pack => pack.ids()), ...allLoose])
  const kept = [...old].filter(id => needed.has(id))

  const isTidy = kept.length === old.size && loose.length === 0 && packs.length <= 1
  if (!isTidy || packs.some(pack => pack.isStored)) {
    const written = await packUp(objects, kept, breath)
    for (const id of loose) rmSync(objects.loose.pathOf(id), { force: true })
    for (const pack of packs) if (pack.path !== written) removePack(pack)
  }
  removeLeftovers(join(objects.path, 'objects'), isOld)
  removeLeftovers(join(objects.path, 'objects', 'pack'), isOld)
  return {
    kept: kept.length,
    young: all.size - old.size,
    removed: old.size - kept.length,
    before,
    after: diskUse(objects),
  }
}

async function packUp(
  objects: ObjectStore,
  ids: readonly Digest[],
  breath: Breath,
): Promise<string | undefined> {
  if (ids.length === 0) return undefined
  const pack: PackWriter = objects.packWriter({ compress: true })
  try {
    for (const id of ids) {
      if (breath.due) await breath.take()
      const { kind, content } = objects.readAny(id)
      pack.add(id, kind, content)
    }
  } catch (error) {
    pack.discard()
    throw error
  }
  return pack.finish()
}

/** The index first, so that nobody finds a pack that is half gone. */
function removePack(pack: Pack): void {
  pack.close()
  rmSync(pack.path.replace(/\.pack$/, '.idx'), { force: true })
  rmSync(pack.path, { force: true })
}

/** What a process that was killed had begun to write. */
function removeLeftovers(folder: string, isOld: (path: string) => boolean): void {
  for (const name of readdirSync(folder)) {
    if (name.startsWith('tmp_') && isOld(join(folder, name))) rmSync(join(folder, name), { force: true })
  }
}

function diskUse(objects: ObjectStore): number {
  const folder = join(objects.path, 'objects')
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter(entry => entry.isFile())
    .map(entry => join(entry.parentPath, entry.name))
    .reduce((bytes, path) => bytes + (existsSync(path) ? statSync(path).size : 0), 0)
}
