import type { Digest } from '../../base/digest.ts'
import { ObjectBatch } from './batch.ts'
import { Breath } from './breath.ts'
import type { Conflict, ConflictKind, Settle, Settled, Settlement } from './conflict.ts'
import { type Labels, type MergedLines, mergeLines } from './merge-lines.ts'
import { emptyTree } from './object.ts'
import type { ObjectStore } from './objects.ts'
import { isBinary } from './patch.ts'
import { readTree, type Tree, type TreeEntry, writeTree } from './tree.ts'

export interface MergeTreesOptions {
  /** Default `refuse`: the conflicts come back and no tree is made. */
  readonly settle?: Settle
  /** Names behind the markers; default `ours`, `base` and `theirs`. */
  readonly labels?: Partial<Labels>
  /** Paths of which ours is taken whatever the others have: code that this process has loaded from the folder. */
  readonly keep?: readonly string[]
  readonly signal?: AbortSignal
}

export interface MergedTrees {
  /** Undefined when a conflict is left. */
  readonly tree: Digest | undefined
  /** Those that are left. */
  readonly conflicts: readonly Conflict[]
  readonly settled: readonly Settled[]
  /** Folders `.git` that differ between the sides: a repository is not merged by its files, so ours is taken. */
  readonly keptGit: readonly string[]
  /** Those of `keep` that another side has otherwise. */
  readonly kept: readonly string[]
}

/**
 * Merges the changes since `base` of one or more trees into `ours`, one after the other, three ways by path. What is equal or changed on one side
 * only is taken by its id, and folders of which that is true are not opened: O(entries of the folders that both sides changed). Text that
 * both changed is merged by lines. Without a base everything counts as added.
 */
export async function mergeTrees(
  objects: ObjectStore,
  base: Digest | undefined,
  ours: Digest,
  theirs: readonly Digest[],
  options: MergeTreesOptions = {},
): Promise<MergedTrees> {
  using merge = new Merge(objects, options)
  const root = (id: Digest): TreeEntry => ({ kind: 'folder', id, mode: 0o755 })
  let tree = ours
  for (const [branch, their] of theirs.entries()) {
    merge.branch = branch
    const sides = { base: root(base ?? emptyTree), ours: root(tree), theirs: root(their) }
    tree = (await merge.entry('', sides))?.id ?? emptyTree
  }
  merge.finish()
  const { conflicts, settled, keptGit, kept } = merge
  return { tree: conflicts.length > 0 ? undefined : tree, conflicts, settled, keptGit, kept }
}

interface Sides {
  readonly base: TreeEntry | undefined
  readonly ours: TreeEntry | undefined
  readonly theirs: TreeEntry | undefined
}

class Merge implements Disposable {
  readonly conflicts: Conflict[] = []
  readonly settled: Settled[] = []
  readonly keptGit: string[] = []
  readonly kept: string[] = []
  branch = 0
  readonly #objects: ObjectStore
  readonly #options: MergeTreesOptions
  readonly #breath: Breath
  #batch: ObjectBatch

  constructor(objects: ObjectStore, options: MergeTreesOptions) {
    this.#objects = objects
    this.#options = options
    this.#breath = new Breath(options.signal)
    this.#batch = new ObjectBatch(objects)
  }

  finish(): void {
    this.#batch.finish()
  }

  [Symbol.dispose](): void {
    this.#batch.discard()
  }

  /** Undefined when the path is not in the result. */
  async entry(path: string, sides: Sides): Promise<TreeEntry | undefined> {
    const { base, ours, theirs } = sides
    if (isEqual(ours, theirs) || isEqual(base, theirs)) return ours
    const { keep = [] } = this.#options
    if (keep.includes(path)) {
      this.kept.push(path)
      return ours
    }
    // A folder that only they changed is taken whole, unless something in it is to be kept.
    if (isEqual(base, ours) && !keep.some(one => one.startsWith(path === '' ? '' : `${path}/`))) return theirs
    if (this.#breath.due) await this.#breath.take()
    if (areFolders(sides)) return this.#folder(path, sides)
    if (ours === undefined || theirs === undefined) return this.#conflict(path, 'modify-delete', sides)
    if (ours.kind === 'absent' || theirs.kind === 'absent') return this.#conflict(path, 'not-kept', sides)
    if (ours.kind !== theirs.kind) return this.#conflict(path, 'type', sides)
    return ours.kind === 'link' ? this.#conflict(path, 'link', sides) : this.#file(path, sides, ours, theirs)
  }

  async #folder(path: string, sides: Sides): Promise<TreeEntry | undefined> {
    const [base, ours, theirs] = [this.#read(sides.base), this.#read(sides.ours), this.#read(sides.theirs)]
    const merged = new Map<string, TreeEntry>()
    for (const name of new Set([...ours.keys(), ...theirs.keys()])) {
      const below = { base: base.get(name), ours: ours.get(name), theirs: theirs.get(name) }
      const at = path === '' ? name : `${path}/${name}`
      const entry = name === '.git' ? this.#git(at, below) : await this.entry(at, below)
      if (entry !== undefined) merged.set(name, entry)
    }
    // A folder that one side removed goes with the last of its files.
    if (merged.size === 0 && (sides.ours === undefined || sides.theirs === undefined)) return undefined
    const mode = await this.#mode(path, sides)
    return { kind: 'folder', id: writeTree(merged, this.#batch), mode }
  }

  #git(path: string, { ours, theirs }: Sides): TreeEntry | undefined {
    if (!isEqual(ours, theirs)) this.keptGit.push(path)
    return ours
  }

  async #file(
    path: string,
    sides: Sides,
    ours: TreeEntry,
    theirs: TreeEntry,
  ): Promise<TreeEntry | undefined> {
    const base = sides.base?.kind === 'file' ? sides.base : undefined
    const mode = () => this.#mode(path, { ...sides, base })
    if (ours.id === theirs.id || base?.id === theirs.id) return { ...ours, mode: await mode() }
    if (base?.id === ours.id) return { ...theirs, mode: await mode() }
    const lines = this.#lines(base, ours, theirs)
    if (lines === undefined) return this.#conflict(path, 'binary', sides)
    if (lines.conflicts === 0 && base !== undefined) {
      return { kind: 'file', id: this.#batch.put('blob', lines.content), mode: await mode() }
    }
    return this.#conflict(path, base === undefined ? 'add-add' : 'content', sides, lines)
  }

  /** Undefined when one side is no text. */
  #lines(base: TreeEntry | undefined, ours: TreeEntry, theirs: TreeEntry): MergedLines | undefined {
    const bytes = {
      base: base ? this.#blob(base.id) : Buffer.alloc(0),
      ours: this.#blob(ours.id),
      theirs: this.#blob(theirs.id),
    }
    if (Object.values(bytes).some(isBinary)) return undefined
    const labels = { ours: 'ours', base: 'base', theirs: 'theirs', ...this.#options.labels }
    return mergeLines(bytes, labels)
  }

  async #mode(path: string, { base, ours, theirs }: Sides): Promise<number> {
    if (ours === undefined || theirs === undefined) return (ours ?? theirs)?.mode ?? 0o755
    if (ours.mode === theirs.mode || base?.mode === theirs.mode) return ours.mode
    if (base?.mode === ours.mode) return theirs.mode
    const entry = await this.#conflict(path, 'mode', { base, ours, theirs })
    return (entry ?? ours).mode
  }

  async #conflict(
    path: string,
    kind: ConflictKind,
    sides: Sides,
    lines?: MergedLines,
  ): Promise<TreeEntry | undefined> {
    const { base, ours, theirs } = sides
    // Kept at once: whoever settles it may want to read it.
    const marked = lines && this.#objects.put('blob', lines.content)
    const conflict: Conflict = {
      path,
      kind,
      branch: this.branch,
      base: base?.id,
      ours: ours?.id,
      theirs: theirs?.id,
      ...(marked !== undefined && { marked }),
    }
    const { settle = 'refuse' } = this.#options
    const settlement = typeof settle === 'function' ? await settle(conflict) : settle
    const { how, entry } = this.#apply(settlement, conflict, sides)
    if (how === 'refuse') this.conflicts.push(conflict)
    else this.settled.push({ path, kind, branch: this.branch, settled: how })
    return entry
  }

  #apply(
    settlement: Settlement,
    { kind, marked }: Conflict,
    { ours, theirs }: Sides,
  ): { readonly how: Settled['settled'] | 'refuse'; readonly entry: TreeEntry | undefined } {
    // There are two modes and nothing else to choose from.
    if (kind === 'mode' && settlement !== 'theirs' && settlement !== 'refuse')
      return { how: 'ours', entry: ours }
    if (typeof settlement === 'object') {
      const { content } = settlement
      // A copy: what was given may change later.
      const bytes = Buffer.from(content as Uint8Array)
      const file = [ours, theirs].find(side => side?.kind === 'file')
      const id = this.#batch.put('blob', bytes)
      return { how: 'content', entry: { kind: 'file', id, mode: file?.mode ?? 0o644 } }
    }
    if (settlement === 'refuse') return { how: 'refuse', entry: ours }
    if (settlement === 'delete') return { how: 'delete', entry: undefined }
    if (settlement === 'ours') return { how: 'ours', entry: ours }
    if (settlement === 'theirs') return { how: 'theirs', entry: theirs }
    if (marked !== undefined && ours !== undefined) return { how: 'markers', entry: { ...ours, id: marked } }
    return ours === undefined ? { how: 'theirs', entry: theirs } : { how: 'ours', entry: ours }
  }

  /** What the merge of an earlier branch made is not in the store yet. */
  #read(entry: TreeEntry | undefined): Tree {
    return entry?.kind !== 'folder' ? new Map() : readTree(this.#objects, this.#flushed(entry.id))
  }

  #blob(id: Digest): Buffer {
    return this.#objects.read(this.#flushed(id))
  }

  #flushed(id: Digest): Digest {
    if (!this.#batch.holds(id)) return id
    this.#batch.finish()
    this.#batch = new ObjectBatch(this.#objects)
    return id
  }
}

function isEqual(one: TreeEntry | undefined, other: TreeEntry | undefined): boolean {
  return one?.kind === other?.kind && one?.id === other?.id && one?.mode === other?.mode
}

/** Whether it can be gone through: a folder on both sides, or on one side and in the base while the other removed it. */
function areFolders({ base, ours, theirs }: Sides): boolean {
  const folders = [ours, theirs].filter(side => side?.kind === 'folder').length
  if (folders === 2) return true
  return folders === 1 && base?.kind === 'folder' && (ours === undefined || theirs === undefined)
}
