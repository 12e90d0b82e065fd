import { isAbsolute, relative } from 'node:path'
import type { Digest } from '../../base/digest.ts'
import { RathError, show } from '../../base/errors.ts'
import { loadedCodeIn } from '../host/loaded-code.ts'
import { realPath } from '../host/real-path.ts'
import { ObjectBatch } from './batch.ts'
import { Breath } from './breath.ts'
import { type FolderNode, nodeOfTree, totalsOf } from './file-index.ts'
import { FolderState } from './folder-state.ts'
import { defaultLimits, type WorkspaceLimits, withinLimits } from './limits.ts'
import { checkId } from './object.ts'
import type { ObjectStore } from './objects.ts'
import { type RestoreReport, restoreFolder } from './restore.ts'
import { type Look, lookAt, lookEverywhere, readNew } from './scan.ts'
import type { Absent } from './tree.ts'

export interface WorkspaceOptions {
  readonly limits?: WorkspaceLimits
  /** Remembers the tree and the index for the next process. Default true; false for a folder that goes with this one. */
  readonly keep?: boolean
  /** The folder is known to hold exactly this tree, because it was just made from it: then even the first look may be at some paths only. */
  readonly holds?: Digest
  /** This process may have loaded code from the folder, which a restore then leaves as it is. */
  readonly mayHoldCode?: boolean
}

export interface Snapshot {
  /** Digest of everything in the folder: names, content, modes, links, and the description of what is not kept. */
  readonly tree: Digest
  readonly notKept: readonly NotKept[]
}

/** Something in the folder that a snapshot describes and does not hold. */
export interface NotKept extends Absent {
  readonly path: string
}

/** From here on, looking everywhere is faster than looking at each. */
const manyPaths = 500

interface CallOptions {
  readonly signal?: AbortSignal
}

export interface RestoreOptions extends CallOptions {
  /** Nothing is done, and the report says what is there, unless the folder holds this tree. */
  readonly from?: Digest
  /** Told the tree that is there, before anything is written. */
  readonly onStart?: (before: Digest) => void
}

/**
 * The files of one folder as a value: a snapshot is a tree in the object store, and a restore makes the folder equal to one. Calls are done one
 * after the other, in the order in which they were made. The folder `.openrath` at the top is no part of it.
 */
export class Workspace implements AsyncDisposable {
  /** The real path. */
  readonly folder: string
  readonly objects: ObjectStore
  readonly #limits: Required<WorkspaceLimits>
  readonly #state: FolderState | undefined
  readonly #mayHoldCode: boolean
  #root: FolderNode | undefined
  #tree: Digest | undefined
  /** Files that changed since the index was last kept: what the next process would have to read again. */
  #unkept = 0
  #last: Promise<unknown> = Promise.resolve()

  private constructor(folder: string, objects: ObjectStore, options: WorkspaceOptions) {
    this.folder = folder
    this.objects = objects
    this.#limits = { ...defaultLimits, ...options.limits }
    this.#mayHoldCode = options.mayHoldCode ?? false
    if (options.keep ?? true) this.#state = new FolderState(objects, folder)
    this.#tree = options.holds ?? this.#state?.tree()
    this.#root = options.holds === undefined ? this.#state?.index() : nodeOfTree(objects, options.holds)
  }

  static async open(
    folder: string,
    objects: ObjectStore,
    options: WorkspaceOptions = {},
  ): Promise<Workspace> {
    return new Workspace(realFolder(folder), objects, options)
  }

  /** Tree of the last snapshot taken or restored here; undefined before the first. Survives the process. */
  get tree(): Digest | undefined {
    return this.#tree
  }

  /**
   * The files as they are now. With `paths`, relative or inside the folder, only those are looked at: right when nothing else was touched, and
   * O(entries of the folders along them) instead of O(files). Files are read only when the system describes them differently than before.
   */
  snapshot(paths?: readonly string[], options: CallOptions = {}): Promise<Snapshot> {
    return this.#queue(async () => {
      const root = await this.#look(paths, options.signal)
      return { tree: root.tree as Digest, notKept: [...notKeptIn(root, '')] }
    })
  }

  /**
   * Makes the folder equal to a tree, touching only what differs. What was there is snapshot first, so nothing that can be kept is lost; what
   * somebody changes after that is left alone and reported as `failed`. What was never kept cannot be brought back, and is removed only where its place is needed; the report names it.
   */
  restore(tree: Digest, options: RestoreOptions = {}): Promise<RestoreReport> {
    return this.#queue(async () => {
      checkId(tree)
      const { from, onStart } = options
      const { tree: before } = await this.#look(undefined, options.signal)
      if (from !== undefined && before !== from)
        return { before: before as Digest, tree: before as Digest, written: 0, removed: 0, notRestored: [] }
      onStart?.(before as Digest)
      const done = await restoreFolder(
        this.folder,
        this.#root,
        tree,
        this.objects,
        new Breath(options.signal),
        this.loadedCode(),
      )
      // What was written is read again: the tree that is reported is the one that is there.
      const touched = done.touched.length > manyPaths ? undefined : done.touched
      const after = await this.#look(touched, options.signal)
      const { written, removed, notRestored } = done
      return { before: before as Digest, tree: after.tree as Digest, written, removed, notRestored }
    })
  }

  /** Paths that this process has loaded code from. */
  loadedCode(): readonly string[] {
    return this.#mayHoldCode ? loadedCodeIn(this.folder) : []
  }

  /** Waits for calls under way and keeps the index for the next process. */
  close(): Promise<void> {
    return this.#queue(async () => this.#keepIndex())
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }

  async #look(paths: readonly string[] | undefined, signal: AbortSignal | undefined): Promise<FolderNode> {
    const look: Look = { limits: this.#limits, breath: new Breath(signal), read: 0 }
    const known = this.#root
    const names = paths?.map(path => this.#namesOf(path))
    const near = known && names && (await lookAt(this.folder, known, names, look))
    const seen = near ?? (await lookEverywhere(this.folder, known, look))
    const root = withinLimits(seen, this.#limits)
    const batch = new ObjectBatch(this.objects)
    try {
      await readNew(this.folder, root, batch, look)
      batch.finish()
    } catch (error) {
      batch.discard()
      throw error
    }
    this.#unkept += look.read
    this.#root = root
    this.#keepTree(root.tree as Digest)
    // So many are not to be read twice because a process died. Keeping the index takes about as long as reading a tenth of all files.
    if (this.#unkept > Math.max(manyPaths, totalsOf(root).files / 4)) this.#keepIndex()
    return root
  }

  #keepTree(tree: Digest): void {
    if (tree === this.#tree) return
    this.#state?.keepTree(tree)
    this.#tree = tree
  }

  #keepIndex(): void {
    if (this.#unkept === 0 || this.#root === undefined) return
    this.#state?.keepIndex(this.#root)
    this.#unkept = 0
  }

  #namesOf(path: string): string[] {
    const inside = isAbsolute(path) ? relative(this.folder, path) : path
    const names = inside.split('/').filter(name => name !== '' && name !== '.')
    if (!names.includes('..') && !path.includes('\0')) return names
    throw new RathError(
      'path-outside',
      `${show(path)} is no path inside the workspace, ${this.folder}. Give one without "..", such as "src/main.ts".`,
      { data: { path } },
    )
  }

  #queue<T>(work: () => Promise<T>): Promise<T> {
    const result = this.#last.then(work)
    this.#last = result.catch(() => {})
    return result
  }
}

function realFolder(folder: string): string {
  try {
    return realPath(folder)
  } catch (cause) {
    throw new RathError('path-missing', `There is no folder ${show(folder)} to keep. Make it first.`, {
      cause,
    })
  }
}

function* notKeptIn(folder: FolderNode, before: string): Generator<NotKept> {
  if (totalsOf(folder).absent === 0) return
  for (const [name, node] of folder.entries) {
    if (node.kind === 'folder') yield* notKeptIn(node, `${before}${name}/`)
    else if (node.kind === 'absent' && node.entry.absent) yield { path: before + name, ...node.entry.absent }
  }
}
