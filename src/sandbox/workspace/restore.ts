import {
  chmodSync,
  closeSync,
  fchmodSync,
  fchownSync,
  lchownSync,
  lstatSync,
  mkdirSync,
  openSync,
  renameSync,
  rmdirSync,
  symlinkSync,
  unlinkSync,
  writeSync,
} from 'node:fs'
import type { Digest } from '../../base/digest.ts'
import { newId } from '../../base/ids.ts'
import type { Breath } from './breath.ts'
import { type FolderNode, folderNode, type IndexNode, isDescribed } from './file-index.ts'
import type { ObjectStore } from './objects.ts'
import { isForbidden, OpenFolder } from './open-folder.ts'
import { ownFolder } from './scan.ts'
import { type NotKeptReason, readTree, type Tree, type TreeEntry } from './tree.ts'

export interface RestoreReport {
  /** The files as they were, so that a restore can be undone. */
  readonly before: Digest
  /** The files as they are now: the tree that was asked for, unless `notRestored` names something. */
  readonly tree: Digest
  /** How many files and links were written, and how many removed. */
  readonly written: number
  readonly removed: number
  readonly notRestored: readonly NotRestored[]
}

/**
 * What is not as the tree says: `not-kept` was never kept and is not there as it was; `left` was not there then, and stays because it was
 * never kept; `changed` is what somebody else has changed since the restore looked, which stays as they made it; `failed` is what the system
 * refused, or the store has lost; `loaded-code` is code that this process has loaded from the folder.
 */
export interface NotRestored {
  readonly path: string
  readonly why: 'not-kept' | 'left' | 'changed' | 'failed' | 'loaded-code'
  readonly reason?: NotKeptReason
  readonly message?: string
}

export interface Restored extends Pick<RestoreReport, 'written' | 'removed' | 'notRestored'> {
  readonly touched: readonly string[]
}

/** Makes a folder equal to a tree, from what is known to be in it, but for the paths in `keep`. O(differences), folders that are equal are not opened. */
export async function restoreFolder(
  path: string,
  current: FolderNode | undefined,
  tree: Digest,
  objects: ObjectStore,
  breath: Breath,
  keep: readonly string[] = [],
): Promise<Restored> {
  const restore = new Restore(objects, breath, keep)
  using folder = OpenFolder.at(path)
  if (current?.tree !== tree) {
    const target = new Map(readTree(objects, tree))
    target.delete(ownFolder)
    await restore.into(folder, current ?? folderNode(0o755, new Map()), target, '')
  }
  return restore
}

class Restore implements Restored {
  readonly #objects: ObjectStore
  readonly #breath: Breath
  readonly #keep: readonly string[]
  readonly notRestored: NotRestored[] = []
  readonly touched: string[] = []
  written = 0
  removed = 0

  constructor(objects: ObjectStore, breath: Breath, keep: readonly string[]) {
    this.#objects = objects
    this.#breath = breath
    this.#keep = keep
  }

  async into(folder: OpenFolder, current: FolderNode, target: Tree, before: string): Promise<void> {
    for (const [name, node] of current.entries) {
      if (target.has(name)) continue
      if (this.#breath.due) await this.#breath.take()
      this.#attempt(before + name, () => this.#remove(folder, name, node, before + name))
    }
    for (const [name, entry] of target) {
      if (this.#breath.due) await this.#breath.take()
      const node = current.entries.get(name)
      const path = before + name
      if (this.#keep.includes(path)) this.#leave(path, node, entry)
      else if (entry.absent !== undefined) this.#missing(path, entry, node)
      else if (entry.kind === 'folder') await this.#folder(folder, name, entry, node, path)
      else if (!isEqual(node, entry)) this.#attempt(path, () => this.#write(folder, name, entry, node, path))
    }
  }

  async #folder(
    parent: OpenFolder,
    name: string,
    entry: TreeEntry,
    node: IndexNode | undefined,
    path: string,
  ): Promise<void> {
    if (node?.kind === 'folder' && node.tree === entry.id && node.mode === entry.mode) return
    const opened = this.#attempt(
      path,
      () => {
        if (node?.kind === 'folder') return openForWriting(parent, name, node.mode)
        if (node !== undefined) this.#removeAll(parent, name, path)
        mkdirSync(parent.pathOf(name), 0o700)
        const made = openForWriting(parent, name, 0o700)
        if (parent.owner) made.chown(parent.owner)
        return made
      },
      node?.kind !== 'folder' || node.mode !== entry.mode,
    )
    if (opened === undefined) return
    using folder = opened
    try {
      const current = node?.kind === 'folder' ? node : folderNode(0, new Map())
      if (current.tree !== entry.id) {
        const target = this.#attempt(path, () => readTree(this.#objects, entry.id), false)
        if (target !== undefined) await this.into(folder, current, target, `${path}/`)
      }
    } finally {
      folder.chmod(entry.mode)
    }
  }

  /** What a snapshot only described. */
  #missing(path: string, { id, absent }: TreeEntry, node: IndexNode | undefined): void {
    if (node?.kind === 'absent' && node.entry.id === id) return
    this.notRestored.push({ path, why: 'not-kept', ...(absent && { reason: absent.reason }) })
  }

  /** What is not to be touched, and is not as the tree says. */
  #leave(path: string, node: IndexNode | undefined, entry?: TreeEntry): void {
    const isFolder = node?.kind === 'folder' && entry?.kind === 'folder'
    const isSame = entry !== undefined && (isFolder ? node.tree === entry.id : isEqual(node, entry))
    if (!isSame) this.notRestored.push({ path, why: 'loaded-code' })
  }

  /** True when nothing of it is left. */
  #remove(parent: OpenFolder, name: string, node: IndexNode, path: string): boolean {
    if (this.#keep.includes(path)) {
      this.#leave(path, node)
      return false
    }
    if (node.kind === 'absent') {
      const reason = node.entry.absent?.reason
      this.notRestored.push({ path, why: 'left', ...(reason && { reason }) })
      return false
    }
    if (node.kind !== 'folder') {
      checkSeen(parent, name, node)
      unlinkSync(parent.pathOf(name))
      this.removed++
      return true
    }
    let isEmpty = true
    {
      using folder = openForWriting(parent, name, node.mode)
      for (const [child, below] of node.entries) {
        if (!this.#remove(folder, child, below, `${path}/${child}`)) isEmpty = false
      }
      if (!isEmpty) folder.chmod(node.mode)
    }
    if (isEmpty) rmdirSync(parent.pathOf(name))
    return isEmpty
  }

  /** Also what was never kept: its place is needed. */
  #removeAll(parent: OpenFolder, name: string, path: string): void {
    if (this.#keep.some(one => one === path || one.startsWith(`${path}/`)))
      throw new Error('it holds code that this process has loaded')
    if (!lstatSync(parent.pathOf(name)).isDirectory()) {
      unlinkSync(parent.pathOf(name))
      this.removed++
      return
    }
    {
      using folder = openForWriting(parent, name, 0)
      for (const child of folder.names()) this.#removeAll(folder, child, `${path}/${child}`)
    }
    rmdirSync(parent.pathOf(name))
  }

  /** Under another name first, which then takes the place of what is there: readers see the old file or the new. */
  #write(
    folder: OpenFolder,
    name: string,
    entry: TreeEntry,
    node: IndexNode | undefined,
    path: string,
  ): void {
    const content = this.#objects.read(entry.id)
    const temporary = folder.pathOf(`.openrath-${newId()}.tmp`)
    try {
      const { owner } = folder
      if (entry.kind === 'link') {
        symlinkSync(content, temporary)
        if (owner) lchownSync(temporary, owner.uid, owner.gid)
      } else writeFile(temporary, content, entry.mode, owner)
      checkSeen(folder, name, node)
      if (node?.kind === 'folder' || isFolder(folder, name, node)) this.#removeAll(folder, name, path)
      renameSync(temporary, folder.pathOf(name))
      this.written++
    } catch (error) {
      try {
        unlinkSync(temporary)
      } catch {}
      throw error
    }
  }

  /** What fails is reported, and the rest goes on. Without `touch` nothing in the folder changes. */
  #attempt<T>(path: string, work: () => T, touch = true): T | undefined {
    if (touch) this.touched.push(path)
    try {
      return work()
    } catch (error) {
      const why = error instanceof ChangedMeanwhile ? 'changed' : 'failed'
      this.notRestored.push({ path, why, message: (error as Error).message })
      return undefined
    }
  }
}

/** What was written after the look was kept by nobody, and is not to be lost. */
function checkSeen(folder: OpenFolder, name: string, node: IndexNode | undefined): void {
  if (node?.kind === 'folder' || node?.kind === 'absent') return
  const found = lstatSync(folder.pathOf(name), { throwIfNoEntry: false })
  const isAsSeen = node === undefined ? found === undefined : found !== undefined && isDescribed(node, found)
  if (!isAsSeen) throw new ChangedMeanwhile('it was changed by somebody else since it was looked at')
}

class ChangedMeanwhile extends Error {}

/** Whether a path is that of a file which a restore wrote and did not come to give its name. */
export function isUnfinished(path: string): boolean {
  return /(?:^|\/)\.openrath-[0-9a-f]{8}-[0-9a-f-]{27}\.tmp$/.test(path)
}

function isEqual(node: IndexNode | undefined, entry: TreeEntry): boolean {
  if (node === undefined || node.kind !== entry.kind || node.kind === 'absent' || node.kind === 'folder')
    return false
  return node.id === entry.id && (node.kind === 'link' || node.mode === entry.mode)
}

/** What is not kept may be a folder too. */
function isFolder(folder: OpenFolder, name: string, node: IndexNode | undefined): boolean {
  return (
    node?.kind === 'absent' &&
    (lstatSync(folder.pathOf(name), { throwIfNoEntry: false })?.isDirectory() ?? false)
  )
}

/** Opens a folder so that its entries can be changed, whatever its mode; the caller sets the mode afterwards. */
function openForWriting(parent: OpenFolder, name: string, mode: number): OpenFolder {
  let folder: OpenFolder
  try {
    folder = parent.child(name)
  } catch (error) {
    if (!isForbidden(error) || !lstatSync(parent.pathOf(name)).isDirectory()) throw error
    chmodSync(parent.pathOf(name), 0o700)
    folder = parent.child(name)
  }
  if ((mode & 0o700) !== 0o700) folder.chmod(mode | 0o700)
  return folder
}

function writeFile(path: string | Buffer, content: Buffer, mode: number, owner: OpenFolder['owner']): void {
  const file = openSync(path, 'wx', 0o600)
  try {
    for (let at = 0; at < content.length; ) at += writeSync(file, content, at)
    if (owner) fchownSync(file, owner.uid, owner.gid)
    // The mode of `open` would be cut by the umask, and a new owner takes set-user-id away.
    fchmodSync(file, mode)
  } finally {
    closeSync(file)
  }
}
