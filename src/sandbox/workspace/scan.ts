import {
  closeSync,
  constants,
  fstatSync,
  lstatSync,
  openSync,
  readlinkSync,
  readSync,
  type Stats,
} from 'node:fs'
import type { Digest } from '../../base/digest.ts'
import { orNothing } from '../host/or-nothing.ts'
import type { ObjectBatch } from './batch.ts'
import type { Breath } from './breath.ts'
import {
  absentNode,
  type FileNode,
  type FolderNode,
  fileNode,
  folderNode,
  type IndexNode,
  isAlike,
  isSame,
  treeEntries,
} from './file-index.ts'
import { nanoseconds, tooBig, type WorkspaceLimits } from './limits.ts'
import { pathIn } from './names.ts'
import { isForbidden, isGone, listFolder, OpenFolder } from './open-folder.ts'
import { type NotKeptReason, writeTree, writeTreeLike } from './tree.ts'

/** The folder at the top of a workspace that holds what is ours, and is no part of it. */
export const ownFolder = '.openrath'

export interface Look {
  readonly limits: Required<WorkspaceLimits>
  readonly breath: Breath
  /** Files that were read and are not what they were. */
  read: number
}

/**
 * Looks at everything. One call to the system per file, and none of its content is read; what is as before is the node it was before. It goes by
 * paths, which is a third faster than through open folders: somebody who swaps a folder for a link meanwhile can show it names from elsewhere,
 * but `readNew` reads nothing through a link.
 */
export async function lookEverywhere(
  path: string,
  before: FolderNode | undefined,
  look: Look,
): Promise<FolderNode> {
  return lookInto(path, rootMode, before, look, 0)
}

/**
 * Looks at these paths only, each a list of names. O(entries of the folders along them). Undefined when one goes through a link, behind which
 * anything may have changed.
 */
export async function lookAt(
  path: string,
  before: FolderNode,
  paths: readonly (readonly string[])[],
  look: Look,
): Promise<FolderNode | undefined> {
  let root: FolderNode | undefined = before
  for (const names of paths) {
    if (names.length === 0) return undefined
    if (names[0] !== ownFolder) root = await lookAlong(path, root, names, look, 0)
    if (root === undefined) return undefined
  }
  return root
}

/** Reads what has no id yet, keeps it, and gives every folder its tree. */
export async function readNew(path: string, root: FolderNode, batch: ObjectBatch, look: Look): Promise<void> {
  if (root.tree !== undefined) return
  using folder = OpenFolder.at(path)
  await readBelow(folder, root, batch, look)
}

/** The mode of the workspace itself is its owner's business. */
const rootMode = 0o755

async function lookInto(
  path: string,
  mode: number,
  before: FolderNode | undefined,
  look: Look,
  depth: number,
): Promise<FolderNode> {
  const { names, isText } = listFolder(path)
  // All at once: between calls to the system each would take three times as long.
  const nodes = names.map(name => before?.entries.get(name))
  const start = `${path}/`
  let count = 0
  let same = before !== undefined && before.mode === mode && before.tree !== undefined
  for (let i = 0; i < names.length; i++) {
    // The clock costs a tenth of what a file does.
    if ((i & 31) === 0 && look.breath.due) await look.breath.take()
    const name = names[i] as string
    const old = nodes[i]
    if (depth === 0 && name === ownFolder) {
      nodes[i] = undefined
      continue
    }
    // Only folders are waited for: a promise per file would double the time.
    const found = describe(isText ? start + name : pathIn(path, name))
    const node = found?.isDirectory()
      ? await lookFolder(path, name, found, old, look, depth)
      : lookFile(found, old, look)
    nodes[i] = node
    if (node !== undefined) count++
    same &&= node === old
  }
  if (before !== undefined && same && count === before.entries.size) return before
  const entries = new Map<string, IndexNode>()
  for (const [i, name] of names.entries()) {
    const node = nodes[i]
    if (node !== undefined) entries.set(name, node)
  }
  return folderNode(mode, entries, before)
}

async function lookAlong(
  path: string,
  before: FolderNode,
  names: readonly string[],
  look: Look,
  depth: number,
): Promise<FolderNode | undefined> {
  const [name, ...rest] = names as [string, ...string[]]
  const old = before.entries.get(name)
  const found = describe(pathIn(path, name))
  let node: IndexNode | undefined
  if (found?.isDirectory() && rest.length > 0 && old?.kind === 'folder') {
    if (!name.isWellFormed()) return undefined
    node = await lookAlong(`${path}/${name}`, old, rest, look, depth + 1)
    if (node === undefined) return undefined
  } else if (found?.isSymbolicLink() && rest.length > 0) {
    return undefined
  } else if (found?.isDirectory()) {
    node = await lookFolder(path, name, found, old, look, depth)
  } else {
    node = lookFile(found, old, look)
  }
  if (node === old) return before
  const entries = new Map(before.entries)
  if (node === undefined) entries.delete(name)
  else entries.set(name, node)
  return folderNode(before.mode, entries, before)
}

async function lookFolder(
  parent: string,
  name: string,
  found: Stats,
  old: IndexNode | undefined,
  look: Look,
  depth: number,
): Promise<IndexNode | undefined> {
  if (depth + 1 >= look.limits.depth) return asBefore(absentNode({ reason: 'too-deep' }), old)
  // A name that is no text cannot be part of a path that is; then the open folder is.
  using opened = name.isWellFormed() ? undefined : OpenFolder.at(pathIn(parent, name))
  const path = opened?.base ?? `${parent}/${name}`
  try {
    return await lookInto(
      path,
      found.mode & 0o7777,
      old?.kind === 'folder' ? old : undefined,
      look,
      depth + 1,
    )
  } catch (error) {
    if (isGone(error)) return undefined
    // Also one that may be listed and not entered.
    if (isForbidden(error)) return asBefore(absentNode({ reason: 'unreadable' }), old)
    if ((error as NodeJS.ErrnoException).code !== 'ENAMETOOLONG') throw error
    return asBefore(absentNode({ reason: 'too-deep' }), old)
  }
}

/** Undefined when it is gone. */
function describe(path: string | Buffer): Stats | undefined {
  try {
    return lstatSync(path, orNothing)
  } catch (error) {
    if (isGone(error)) return undefined
    throw error
  }
}

function lookFile(found: Stats | undefined, old: IndexNode | undefined, look: Look): IndexNode | undefined {
  if (found === undefined) return undefined
  if (isSame(old, found)) return old
  if (found.isSymbolicLink()) return fileNode(found)
  if (!found.isFile()) return asBefore(absentNode({ reason: specialKind(found) }), old)
  if (found.size > look.limits.file) return asBefore(tooBig(found.size, found.mtimeMs), old)
  return fileNode(found)
}

function specialKind(found: Stats): NotKeptReason {
  if (found.isFIFO()) return 'fifo'
  return found.isSocket() ? 'socket' : 'device'
}

function asBefore(node: IndexNode, old: IndexNode | undefined): IndexNode {
  return node.kind === 'absent' && old?.kind === 'absent' && node.entry.id === old.entry.id ? old : node
}

async function readBelow(
  folder: OpenFolder,
  node: FolderNode,
  batch: ObjectBatch,
  look: Look,
): Promise<void> {
  const { was } = node
  let isCounted = true
  for (const [name, child] of node.entries) {
    if (child.kind === 'absent' || (child.kind === 'folder' ? child.tree : child.id) !== undefined) continue
    if (look.breath.due) await look.breath.take()
    if (child.kind === 'folder') {
      let opened: OpenFolder
      try {
        opened = folder.child(name)
      } catch (error) {
        if (!isGone(error)) throw error
        node.entries.delete(name)
        isCounted = false
        continue
      }
      using below = opened
      await readBelow(below, child, batch, look)
      isCounted &&= child.totals !== undefined
    } else {
      const read = readEntry(folder, name, child, was?.entries.get(name), batch, look)
      if (read === undefined) node.entries.delete(name)
      else node.entries.set(name, read)
      isCounted &&= read !== undefined && read.kind === child.kind && read.size === child.size
    }
  }
  // What was counted before it was read may have gone, or grown.
  if (!isCounted) delete node.totals
  node.was = undefined
  node.tree = treeOf(node, was, batch)
}

/** What was read again, because it might have changed, is often what it was. What did change is often the content of a file. */
function treeOf(node: FolderNode, was: FolderNode | undefined, batch: ObjectBatch): Digest {
  const ids = was && changedIds(node, was)
  if (was?.tree === undefined || ids === undefined) return writeTree(treeEntries(node), batch)
  if (ids.size === 0) return was.tree
  return writeTreeLike(was.tree, ids, batch) ?? writeTree(treeEntries(node), batch)
}

/** The content that differs, by name; undefined when more than that does. */
function changedIds(node: FolderNode, was: FolderNode): Map<string, Digest> | undefined {
  if (node.entries.size !== was.entries.size) return undefined
  const ids = new Map<string, Digest>()
  for (const [name, child] of node.entries) {
    const old = was.entries.get(name)
    if (isAlike(child, old)) continue
    if (child.kind === 'absent' || child.kind !== old?.kind || child.mode !== old.mode) return undefined
    ids.set(name, (child.kind === 'folder' ? child.tree : child.id) as Digest)
  }
  return ids
}

/** Undefined when it is gone. */
function readEntry(
  folder: OpenFolder,
  name: string,
  node: FileNode,
  was: IndexNode | undefined,
  batch: ObjectBatch,
  look: Look,
): IndexNode | undefined {
  const known = was?.kind === node.kind ? was.id : undefined
  const put = (content: Buffer) => {
    const id = batch.put('blob', content, known)
    if (id !== known) look.read++
    return id
  }
  const readAt = Date.now()
  const path = folder.pathOf(name)
  try {
    if (node.kind === 'link') {
      const found = lstatSync(path)
      const target = readlinkSync(path, { encoding: 'buffer' })
      return fileNode(found, put(target), readAt)
    }
    const file = openSync(path, readFlags)
    try {
      const found = fstatSync(file)
      if (!found.isFile()) return absentNode({ reason: specialKind(found) })
      if (found.size > look.limits.file) return tooBig(found.size, found.mtimeMs)
      return fileNode(found, put(readAll(file, found.size)), readAt)
    } finally {
      closeSync(file)
    }
  } catch (error) {
    if (isGone(error) || (error as NodeJS.ErrnoException).code === 'EINVAL') return undefined
    if (isForbidden(error)) {
      return absentNode({ reason: 'unreadable', size: node.size, modified: nanoseconds(node.modified) })
    }
    throw error
  }
}

// Without O_NONBLOCK, opening a pipe that has taken the file's place would wait for somebody to write into it.
const readFlags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK

function readAll(file: number, size: number): Buffer {
  const bytes = Buffer.allocUnsafeSlow(size)
  let read = 0
  while (read < size) {
    const more = readSync(file, bytes, read, size - read, read)
    if (more === 0) break
    read += more
  }
  return bytes.subarray(0, read)
}
