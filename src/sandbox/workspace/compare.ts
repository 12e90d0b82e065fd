import type { Digest } from '../../base/digest.ts'
import type { ObjectStore } from './objects.ts'
import { readTree, type Tree, type TreeEntry } from './tree.ts'

/** A path that differs between two trees. The path of a folder ends in `/`; one is named only where it is empty or its mode differs. */
export interface Difference {
  readonly path: string
  readonly before?: TreeEntry
  readonly after?: TreeEntry
}

/** What differs, by path. Folders with equal ids are not opened: O(entries of the folders that differ). */
export function* compareTrees(objects: ObjectStore, before: Digest, after: Digest): Generator<Difference> {
  if (before !== after)
    yield* compareFolders(objects, readTree(objects, before), readTree(objects, after), '')
}

/** Every file and link, with its path. */
export function* filesOf(
  objects: ObjectStore,
  tree: Digest,
): Generator<{ readonly path: string; readonly entry: TreeEntry }> {
  for (const { path, after } of compareFolders(objects, new Map(), readTree(objects, tree), '')) {
    if (after !== undefined && after.kind !== 'folder') yield { path, entry: after }
  }
}

/** What is at a path: a folder too; undefined when nothing is. */
export function entryAt(objects: ObjectStore, tree: Digest, path: string): TreeEntry | undefined {
  let entry: TreeEntry | undefined = { kind: 'folder', id: tree, mode: 0o755 }
  for (const name of path.split('/')) {
    if (name === '' || name === '.') continue
    if (entry?.kind !== 'folder') return undefined
    entry = readTree(objects, entry.id).get(name)
  }
  return entry
}

/** The bytes of a file, or the target of a link; undefined when there is none, or it was not kept. */
export function blobAt(objects: ObjectStore, tree: Digest, path: string): Buffer | undefined {
  const entry = entryAt(objects, tree, path)
  return entry?.kind === 'file' || entry?.kind === 'link' ? objects.read(entry.id) : undefined
}

function* compareFolders(
  objects: ObjectStore,
  before: Tree,
  after: Tree,
  path: string,
): Generator<Difference> {
  const names: string[] = []
  for (const [name, entry] of before) if (!isEqual(entry, after.get(name))) names.push(name)
  for (const name of after.keys()) if (!before.has(name)) names.push(name)
  for (const name of names.sort())
    yield* compareEntries(objects, before.get(name), after.get(name), path + name)
}

function isEqual(one: TreeEntry, other: TreeEntry | undefined): boolean {
  return one.kind === other?.kind && one.id === other.id && one.mode === other.mode
}

function* compareEntries(
  objects: ObjectStore,
  before: TreeEntry | undefined,
  after: TreeEntry | undefined,
  path: string,
): Generator<Difference> {
  const folderBefore = before?.kind === 'folder' ? readTree(objects, before.id) : undefined
  const folderAfter = after?.kind === 'folder' ? readTree(objects, after.id) : undefined
  if (before !== undefined && !folderBefore && after !== undefined && !folderAfter) {
    yield { path, before, after }
    return
  }
  if (before !== undefined && !folderBefore) yield { path, before }
  if (folderBefore || folderAfter) {
    const named = {
      path: `${path}/`,
      ...(folderBefore && { before }),
      ...(folderAfter && { after }),
    } as Difference
    if (
      folderBefore && folderAfter ? before?.mode !== after?.mode : (folderBefore ?? folderAfter)?.size === 0
    )
      yield named
    yield* compareFolders(objects, folderBefore ?? new Map(), folderAfter ?? new Map(), `${path}/`)
  }
  if (after !== undefined && !folderAfter) yield { path, after }
}
