import type { Stats } from 'node:fs'
import type { Digest } from '../../base/digest.ts'
import type { ObjectStore } from './objects.ts'
import { type Absent, absentEntry, readTree, type TreeEntry } from './tree.ts'

/**
 * What a folder held when it was last looked at: for each file how the system described it and the id of its content, so that only files that are
 * described differently are read again. Nodes are never changed once they are part of a snapshot: an unchanged folder is the same object in the next.
 */
export type IndexNode = FileNode | FolderNode | AbsentNode

export interface FileNode {
  readonly kind: 'file' | 'link'
  readonly mode: number
  readonly size: number
  /** Milliseconds since the epoch, to a quarter of a microsecond. Numbers of 64 bits would be exact, and make a look a third slower. */
  readonly modified: number
  readonly changed: number
  readonly inode: number
  /** Undefined until it is read. */
  readonly id: Digest | undefined
  /** It was changed so shortly before it was read that a later change may look the same: to be read again. */
  readonly racy: boolean
}

export interface FolderNode {
  readonly kind: 'folder'
  readonly mode: number
  readonly entries: Map<string, IndexNode>
  /** Undefined while something below has no id. */
  tree: Digest | undefined
  /** While it has none: the folder as it was. It has the same tree if what is read turns out to be what it was. */
  was?: FolderNode | undefined
  totals?: Totals
}

export interface AbsentNode {
  readonly kind: 'absent'
  readonly entry: TreeEntry
}

/** What is kept in a folder and below, and how many entries are not. */
export interface Totals {
  readonly files: number
  readonly bytes: number
  readonly absent: number
}

export function folderNode(
  mode: number,
  entries: Map<string, IndexNode>,
  was?: FolderNode | undefined,
): FolderNode {
  return { kind: 'folder', mode, entries, tree: undefined, was: was?.tree === undefined ? was?.was : was }
}

export function absentNode(absent: Absent): AbsentNode {
  return { kind: 'absent', entry: absentEntry(absent) }
}

/** A file as described; with an id once it was read at `readAt`, in milliseconds since the epoch. */
export function fileNode(found: Stats, id?: Digest, readAt = 0): FileNode {
  return {
    kind: found.isSymbolicLink() ? 'link' : 'file',
    mode: found.mode & 0o7777,
    size: found.size,
    modified: found.mtimeMs,
    changed: found.ctimeMs,
    inode: found.ino,
    id,
    racy: id !== undefined && found.ctimeMs >= readAt - clockStep,
  }
}

/** The system stamps files with a clock that goes in steps of up to 10 ms, and lags by one. */
const clockStep = 20

/** Whether what was read before still holds. */
export function isSame(node: IndexNode | undefined, found: Stats): node is FileNode {
  return (
    node !== undefined &&
    (node.kind === 'file' || node.kind === 'link') &&
    node.id !== undefined &&
    !node.racy &&
    node.changed === found.ctimeMs &&
    node.modified === found.mtimeMs &&
    node.size === found.size &&
    node.inode === found.ino &&
    node.mode === (found.mode & 0o7777) &&
    (node.kind === 'link') === found.isSymbolicLink()
  )
}

/** Whether a file is as it was described. Of one that was only made from a tree nothing is known, and anything is. */
export function isDescribed(node: FileNode, found: Stats): boolean {
  return (
    node.inode === 0 ||
    (node.changed === found.ctimeMs && node.modified === found.mtimeMs && node.inode === found.ino)
  )
}

/** Whether both make the same entry of a tree. */
export function isAlike(one: IndexNode, other: IndexNode | undefined): boolean {
  if (one === other) return true
  if (other === undefined || one.kind !== other.kind) return false
  if (one.kind === 'absent') return one.entry.id === (other as AbsentNode).entry.id
  if (one.kind === 'folder')
    return one.tree === (other as FolderNode).tree && one.mode === (other as FolderNode).mode
  return one.id === (other as FileNode).id && (one.kind === 'link' || one.mode === (other as FileNode).mode)
}

export function totalsOf(folder: FolderNode): Totals {
  if (folder.totals !== undefined) return folder.totals
  let files = 0
  let bytes = 0
  let absent = 0
  for (const node of folder.entries.values()) {
    const below = node.kind === 'folder' ? totalsOf(node) : undefined
    files += below?.files ?? (node.kind === 'absent' ? 0 : 1)
    bytes += below?.bytes ?? ('size' in node ? node.size : 0)
    absent += below?.absent ?? (node.kind === 'absent' ? 1 : 0)
  }
  folder.totals = { files, bytes, absent }
  return folder.totals
}

/** A folder that was made from a tree and not looked at since: its content is known, and how the system describes it is not. O(files). */
export function nodeOfTree(objects: ObjectStore, tree: Digest, mode = 0o755): FolderNode {
  const entries = new Map<string, IndexNode>()
  for (const [name, entry] of readTree(objects, tree)) {
    const { kind, id, mode } = entry
    if (kind === 'absent') entries.set(name, { kind, entry })
    else if (kind === 'folder') entries.set(name, nodeOfTree(objects, id, mode))
    else entries.set(name, { kind, mode, id, size: 0, modified: 0, changed: 0, inode: 0, racy: true })
  }
  return { kind: 'folder', mode, entries, tree }
}

/** The entries of a folder as its tree has them. Everything below has its id. */
export function* treeEntries(folder: FolderNode): Generator<[string, TreeEntry]> {
  for (const [name, node] of folder.entries) {
    if (node.kind === 'absent') yield [name, node.entry]
    else if (node.kind === 'folder')
      yield [name, { kind: 'folder', id: node.tree as Digest, mode: node.mode }]
    else yield [name, { kind: node.kind, id: node.id as Digest, mode: node.kind === 'link' ? 0 : node.mode }]
  }
}
