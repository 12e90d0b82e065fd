import type { Dirent, Stats } from 'node:fs'
import { lstat, readdir } from 'node:fs/promises'
import { join } from 'node:path'

/** An overlay, seen from its parts. */
export interface OverlayView {
  /** Where what was written lies. */
  readonly upper: string
  /** The files that it started with. */
  readonly base: string
  /** What its users see. */
  readonly merged: string
}

/**
 * Paths that were written, made or removed in an overlay, in order. Each stands for one entry: a new folder is named and so is all that lies
 * in it; of a folder that is gone only its own name is. What was written back as it was is named too. Undefined where a folder cannot be
 * read.
 */
export async function changesOf(view: OverlayView): Promise<readonly string[] | undefined> {
  const changed: string[] = []
  try {
    if (await differs(view, '.')) changed.push('.')
    await compare(view, '', changed)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EACCES') return undefined
    throw error
  }
  return changed.sort()
}

/** A folder that is in the upper layer and in the base. */
async function compare(view: OverlayView, folder: string, changed: string[]): Promise<void> {
  const [entries, before] = await Promise.all([
    entriesOf(join(view.upper, folder)),
    entriesOf(join(view.base, folder)),
  ])
  const known = new Map(before.map(entry => [entry.name, entry]))
  const unseen = new Set(known.keys())
  for (const entry of entries) {
    unseen.delete(entry.name)
    const path = join(folder, entry.name)
    const both = entry.isDirectory() && known.get(entry.name)?.isDirectory()
    if (!both || (await differs(view, path))) changed.push(path)
    if (both) await compare(view, path, changed)
    else if (entry.isDirectory()) await addAll(view, path, changed)
  }
  // A folder that was removed and made again hides all of the base's; that it does is not in its entries, so one of them is looked for.
  const [first] = unseen
  if (first !== undefined && (await statOrNull(join(view.merged, folder, first))) === null) {
    for (const name of unseen) changed.push(join(folder, name))
  }
}

/** A folder that the base has not: all of it lies in the upper layer, and no marks of what was removed. */
async function addAll(view: OverlayView, folder: string, changed: string[]): Promise<void> {
  for (const entry of await entriesOf(join(view.upper, folder))) {
    const path = join(folder, entry.name)
    changed.push(path)
    if (entry.isDirectory()) await addAll(view, path, changed)
  }
}

/** Every folder on the way to a change is in the upper layer; one is changed itself when its mode is. */
async function differs({ upper, base }: OverlayView, folder: string): Promise<boolean> {
  const [now, before] = await Promise.all([statOrNull(join(upper, folder)), lstat(join(base, folder))])
  return now?.mode !== before.mode || now.uid !== before.uid || now.gid !== before.gid
}

/** Empty for a folder that somebody removed in the meantime. */
async function entriesOf(folder: string): Promise<Dirent[]> {
  try {
    return await readdir(folder, { withFileTypes: true })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return []
    throw error
  }
}

async function statOrNull(path: string): Promise<Stats | null> {
  return lstat(path).catch(() => null)
}
