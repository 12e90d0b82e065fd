import type { Digest } from '../../base/digest.ts'
import { sha256 } from '../../base/digest.ts'
import { RathError } from '../../base/errors.ts'
import { byteOrder, nameFromStored, nameOf, storedName } from './names.ts'
import { damaged, emptyBlob, emptyTree, type ObjectKind } from './object.ts'
import type { ObjectStore } from './objects.ts'

/** Why something in a folder is recorded and not kept. */
export type NotKeptReason = 'fifo' | 'socket' | 'device' | 'too-big' | 'too-many' | 'too-deep' | 'unreadable'

/** What stands for something that is not kept: enough to see that it changed, by its size and time. */
export interface Absent {
  readonly reason: NotKeptReason
  /** Bytes. */
  readonly size?: number
  /** Nanoseconds since the epoch, to the microsecond. */
  readonly modified?: string
  /** A folder: how many files it holds, and the digest of their names, sizes, times and modes. */
  readonly files?: number
  readonly digest?: Digest
}

/**
 * An entry of a folder. `id` is that of a blob, for a link one that holds its target, or of a tree; for what is not kept, the digest of
 * what is recorded. `mode` is the permission bits, 0 where there are none.
 */
export interface TreeEntry {
  readonly kind: 'file' | 'link' | 'folder' | 'absent'
  readonly id: Digest
  readonly mode: number
  readonly absent?: Absent
}

/** A folder by name, in no order. */
export type Tree = ReadonlyMap<string, TreeEntry>

/** The entry that holds what git's trees have no place for: modes besides 644 and 755, and what is not kept. No file can have its name. */
const sideEntry = '%openrath'

interface Side {
  /** Octal. */
  readonly modes?: Readonly<Record<string, string>>
  readonly absent?: Readonly<Record<string, Absent>>
}

export interface ObjectWriter {
  put(kind: ObjectKind, content: Uint8Array): Digest
  /** The content of one that was just written or read. */
  recent?(id: Digest): Buffer | undefined
}

export function absentEntry(absent: Absent): TreeEntry {
  return { kind: 'absent', id: sha256(JSON.stringify(absent)), mode: 0, absent }
}

/** Trees by their bytes, as long as somebody has those: what was just written or read is not taken apart again. */
const treesByBytes = new WeakMap<Uint8Array, Tree>()

/** O(n log n) in the entries of this folder; those below are not looked at. */
export function writeTree(entries: Iterable<readonly [string, TreeEntry]>, objects: ObjectWriter): Digest {
  const tree: Tree = new Map(entries)
  const rows: Row[] = []
  const modes: [string, string][] = []
  const absent: [string, Absent][] = []
  for (const [name, entry] of tree) {
    if (entry.absent !== undefined) {
      absent.push([name, entry.absent])
      continue
    }
    const usual = gitMode(entry)
    if (entry.kind !== 'link' && entry.mode !== usualBits(usual)) modes.push([name, entry.mode.toString(8)])
    const bytes = byteOrder(storedName(name, entry.kind === 'link'))
    rows.push({ order: entry.kind === 'folder' ? `${bytes}/` : bytes, mode: usual, bytes, id: entry.id })
  }
  if (modes.length > 0 || absent.length > 0) {
    const side: Side = {
      ...(modes.length > 0 && { modes: sorted(modes) }),
      ...(absent.length > 0 && { absent: sorted(absent) }),
    }
    const id = objects.put('blob', Buffer.from(`${JSON.stringify(side, null, 1)}\n`))
    rows.push({ order: sideEntry, mode: '100644', bytes: sideEntry, id })
  }
  rows.sort((one, other) => (one.order < other.order ? -1 : 1))
  const bytes = treeBytes(rows)
  // A reader is to be told of what is wrong with it.
  if (tree.keys().every(isName)) treesByBytes.set(bytes, tree)
  return objects.put('tree', bytes)
}

/** The same tree with other content under some of its names; undefined when it is not at hand. A tenth of what writing it anew costs. */
export function writeTreeLike(
  tree: Digest,
  ids: ReadonlyMap<string, Digest>,
  objects: ObjectWriter,
): Digest | undefined {
  const before = objects.recent?.(tree)
  const known = before && treesByBytes.get(before)
  if (before === undefined || known === undefined) return undefined
  const after = new Map(known)
  const rows = new Map<string, Digest>()
  for (const [name, id] of ids) {
    const entry = known.get(name)
    if (entry === undefined) return undefined
    after.set(name, { ...entry, id })
    rows.set(`${gitMode(entry)} ${byteOrder(storedName(name, entry.kind === 'link'))}`, id)
  }
  const bytes = Buffer.allocUnsafeSlow(before.length)
  before.copy(bytes)
  for (let at = 0; at < bytes.length; ) {
    const end = bytes.indexOf(0, at)
    const id = rows.get(bytes.toString('latin1', at, end))
    if (id !== undefined) bytes.write(id, end + 1, 'hex')
    at = end + 33
  }
  treesByBytes.set(bytes, after)
  return objects.put('tree', bytes)
}

/** `store-corrupt` when it holds what no folder can: it may come from somebody else's store. */
export function readTree(objects: ObjectStore, id: Digest): Tree {
  if (id === emptyTree) return new Map()
  const bytes = objects.read(id, 'tree')
  const known = treesByBytes.get(bytes)
  if (known !== undefined) return known
  const entries = new Map<string, TreeEntry>()
  let side: Side = {}
  for (const { mode, stored, child } of rowsOf(objects, id, bytes)) {
    if (stored === sideEntry) {
      side = JSON.parse(objects.read(child).toString()) as Side
      continue
    }
    const name = checkName(nameFromStored(stored), id)
    const kind = kinds[mode]
    if (kind === undefined)
      throw damaged(id, objects.path, `"${stored}" has the mode ${mode}, which is not ours`)
    entries.set(name, { kind, id: child, mode: usualBits(mode) })
  }
  for (const [name, mode] of Object.entries(side.modes ?? {})) {
    const entry = entries.get(name)
    if (entry !== undefined) entries.set(name, { ...entry, mode: Number.parseInt(mode, 8) & 0o7777 })
  }
  for (const [name, absent] of Object.entries(side.absent ?? {})) {
    entries.set(checkName(name, id), absentEntry(absent))
  }
  treesByBytes.set(bytes, entries)
  return entries
}

/** The trees and the blobs that a tree names, once each, itself included. */
export function* objectsBelow(objects: ObjectStore, tree: Digest, seen: Set<Digest>): Generator<Digest> {
  if (seen.has(tree)) return
  seen.add(tree)
  yield tree
  for (const { mode, child } of rowsOf(objects, tree, objects.read(tree, 'tree'))) {
    if (mode === '40000') yield* objectsBelow(objects, child, seen)
    else if (!seen.has(child)) {
      seen.add(child)
      yield child
    }
  }
}

/** The ids that the bytes of a tree name. */
export function* childrenOf(objects: ObjectStore, tree: Digest, bytes: Buffer): Generator<Digest> {
  for (const { child } of rowsOf(objects, tree, bytes)) yield child
}

/** What a tree needs and `base` does not name in the same place, once each, what something is made of before it. O(differences). */
export function* objectsSince(
  objects: ObjectStore,
  tree: Digest,
  base: Digest | undefined,
  seen: Set<Digest>,
): Generator<{ readonly id: Digest; readonly kind: ObjectKind }> {
  if (tree === base || tree === emptyTree || seen.has(tree)) return
  seen.add(tree)
  const before = new Map<string, { readonly mode: string; readonly child: Digest }>()
  if (base !== undefined && base !== emptyTree) {
    for (const row of rowsOf(objects, base, objects.read(base, 'tree'))) before.set(row.stored, row)
  }
  for (const { mode, stored, child } of rowsOf(objects, tree, objects.read(tree, 'tree'))) {
    const old = before.get(stored)
    if (old?.child === child || child === emptyBlob) continue
    if (mode === '40000') {
      yield* objectsSince(objects, child, old?.mode === '40000' ? old.child : undefined, seen)
    } else if (!seen.has(child)) {
      seen.add(child)
      yield { id: child, kind: 'blob' }
    }
  }
  yield { id: tree, kind: 'tree' }
}

function* rowsOf(objects: ObjectStore, id: Digest, bytes: Buffer) {
  for (let at = 0; at < bytes.length; ) {
    const space = bytes.indexOf(0x20, at)
    const end = bytes.indexOf(0, space)
    if (space < 0 || end < 0 || end + 33 > bytes.length) throw damaged(id, objects.path, 'it is no tree')
    const mode = bytes.toString('latin1', at, space)
    const stored = nameOf(bytes.subarray(space + 1, end))
    at = end + 33
    yield { mode, stored, child: bytes.toString('hex', end + 1, at) }
  }
}

const kinds: Readonly<Record<string, TreeEntry['kind']>> = {
  '100644': 'file',
  '100755': 'file',
  '120000': 'link',
  '40000': 'folder',
}

function gitMode({ kind, mode }: TreeEntry): string {
  if (kind === 'folder') return '40000'
  if (kind === 'link') return '120000'
  return mode & 0o100 ? '100755' : '100644'
}

function usualBits(gitMode: string): number {
  if (gitMode === '120000') return 0
  return gitMode === '100644' ? 0o644 : 0o755
}

interface Row {
  readonly order: string
  readonly mode: string
  /** The name, a character for each byte. */
  readonly bytes: string
  readonly id: Digest
}

/** For each `<mode> <name>`, a zero, and the id. */
function treeBytes(rows: readonly Row[]): Buffer {
  const length = rows.reduce((sum, { mode, bytes }) => sum + mode.length + bytes.length + 34, 0)
  const tree = Buffer.allocUnsafeSlow(length)
  let at = 0
  for (const { mode, bytes, id } of rows) {
    at += tree.write(`${mode} ${bytes}\0`, at, 'latin1')
    at += tree.write(id, at, 'hex')
  }
  return tree
}

function sorted<T>(entries: [string, T][]): Record<string, T> {
  const record = Object.create(null) as Record<string, T>
  for (const [name, value] of entries.sort(([one], [other]) => (one < other ? -1 : 1))) record[name] = value
  return record
}

function isName(name: string): boolean {
  return name !== '' && name !== '.' && name !== '..' && !/[/\0]/.test(name)
}

function checkName(name: string, tree: Digest): string {
  if (isName(name)) return name
  throw new RathError(
    'store-corrupt',
    `The tree ${tree} has an entry ${JSON.stringify(name)}, which no folder has.`,
  )
}
