import { readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { DatabaseSync } from 'node:sqlite'
import { setTimeout as wait } from 'node:timers/promises'
import type { Digest } from '../../base/digest.ts'
import { isBusy } from '../../base/sqlite/errors.ts'
import { openDatabase } from '../../base/sqlite/open.ts'
import { compareTrees } from '../../sandbox/workspace/compare.ts'
import type { Settle } from '../../sandbox/workspace/conflict.ts'
import { mergeTrees } from '../../sandbox/workspace/merge.ts'
import type { ObjectStore } from '../../sandbox/workspace/objects.ts'
import { isUnfinished } from '../../sandbox/workspace/restore.ts'
import type { FileChange } from '../../session/chunk.ts'
import { homeFolder, privateFolder } from './home.ts'
import { folderId } from './placed-folder.ts'

/** What a `RestoreReport` says, written out: the types of the package know nothing of Node. */
export interface Restored {
  readonly before: Digest
  readonly tree: Digest
  readonly notRestored: readonly {
    readonly path: string
    readonly why: 'not-kept' | 'left' | 'changed' | 'loaded-code' | 'failed'
    readonly message?: string
  }[]
}

/** A folder whose files can be kept and put back; `Workspace` is one. */
export interface KeptFolder {
  readonly folder: string
  /** The tree that was last kept or put back. */
  readonly tree: Digest | undefined
  snapshot(paths?: readonly string[]): Promise<{ readonly tree: Digest }>
  restore(
    tree: Digest,
    options?: { readonly from?: Digest; readonly onStart?: (before: Digest) => void },
  ): Promise<Restored>
  /** Paths that this process has loaded code from, which a restore leaves as they are. */
  loadedCode?(): readonly string[]
  close(): Promise<void>
}

/** The folder of a branch, which may know by itself what differs from what it began with. */
export interface BranchFolder {
  changed(): Promise<readonly string[] | undefined>
  close(): Promise<void>
}

/** What guards a folder that other processes may take files back into, too. */
export interface Guard {
  /** An `ObjectStore`; not written here, because the types of the package know nothing of Node. */
  readonly objects: unknown
  take(): Promise<FolderLock>
}

/** The files of a place while no other process takes files back into it. */
export interface AloneFiles {
  look(): Promise<Digest>
  /** Makes them equal to a tree; with `from`, only if they are that one. */
  restore(tree: Digest, from?: Digest): Promise<Restored>
}

/** The files of a place, as they were last seen and as they are. */
export class PlaceFiles {
  readonly #workspace: KeptFolder
  readonly #folder: BranchFolder | undefined
  readonly #changes: (from: Digest, to: Digest) => Promise<readonly FileChange[]>
  readonly #guard: Guard | undefined
  /** The tree that was seen here when the place was opened, or first. */
  first: Digest | undefined

  constructor(
    workspace: KeptFolder,
    folder: BranchFolder | undefined,
    changes: (from: Digest, to: Digest) => Promise<readonly FileChange[]>,
    guard?: Guard,
  ) {
    this.#workspace = workspace
    this.#folder = folder
    this.#changes = changes
    this.#guard = guard
    this.first = workspace.tree
  }

  /** The tree that was last seen here, if any was. */
  get seen(): Digest | undefined {
    return this.#workspace.tree
  }

  /** The tree as it is now. Only these paths can differ from what was last seen, or any. */
  async look(paths?: readonly string[]): Promise<Digest> {
    const { tree } = await this.#workspace.snapshot(paths ?? (await this.#folder?.changed()))
    this.first ??= tree
    return tree
  }

  changes(from: Digest, to: Digest): Promise<readonly FileChange[]> {
    return this.#changes(from, to)
  }

  /** What a merge into these files takes from nowhere else. */
  loadedCode(): readonly string[] {
    return this.#workspace.loadedCode?.() ?? []
  }

  /** Runs work while no other process takes files back into the folder. What one that died had half done is undone first. */
  async alone<T>(work: (files: AloneFiles) => Promise<T>): Promise<T> {
    using lock = await this.#guard?.take()
    if (lock?.left) await this.#undo(lock.left, lock)
    return await work({
      look: () => this.look(),
      restore: (tree, from) => this.#restore(tree, lock, from),
    })
  }

  /**
   * Whoever died had written some of the files of `to` and not others. What is as it wrote it becomes what it was before, which is as if it had not
   * begun; what somebody else has changed since stays.
   */
  async #undo({ from, to }: TakingBack, lock: FolderLock): Promise<void> {
    const objects = this.#guard?.objects as ObjectStore
    // Kept by somebody whose files are not kept here: what is there is taken as it is.
    if (!objects.has(from) || !objects.has(to)) return
    const found = await this.look()
    for (const { path, after } of compareTrees(objects, from, found)) {
      if (after?.kind === 'file' && isUnfinished(path))
        rmSync(join(this.#workspace.folder, path), { force: true })
    }
    const now = await this.look()
    const settle: Settle = ({ kind }) => (kind === 'mode' ? 'theirs' : 'ours')
    const { tree } = await mergeTrees(objects, to, now, [from], { settle })
    // The note of what was being done stays until that is undone: this process may die too.
    if (tree !== undefined && tree !== now) await this.#workspace.restore(tree)
    lock.done()
  }

  async #restore(tree: Digest, lock: FolderLock | undefined, from?: Digest): Promise<Restored> {
    const report = await this.#workspace.restore(tree, {
      ...(from !== undefined && { from }),
      onStart: before => lock?.begin({ from: before, to: tree }),
    })
    lock?.done()
    return report
  }

  async close(): Promise<void> {
    await this.#workspace.close()
    await this.#folder?.close()
  }
}

/** Files that are being taken back into a folder: the tree before and the one after. */
interface TakingBack {
  readonly from: Digest
  readonly to: Digest
}

/**
 * Lets one process at a time take files back into a folder. It is a lock of the system on a file, so the death of its holder releases it. The
 * file lies outside every workspace, where no sandbox can write or replace it, and is named after the folder's identity, whatever path led there.
 */
export class FolderLock implements Disposable {
  readonly #db: DatabaseSync
  readonly #note: string
  /** What a holder that died was in the middle of. */
  left: TakingBack | undefined

  private constructor(db: DatabaseSync, note: string) {
    this.#db = db
    this.#note = note
    this.left = readNote(note)
  }

  /** Waits until it is free. */
  static async take(folder: string, kept: string): Promise<FolderLock> {
    const path = join(lockFolder(kept), `${folderId(folder)}.lock`)
    const db = await openDatabase(path)
    try {
      for (let attempt = 0; ; attempt++) {
        try {
          db.exec('BEGIN IMMEDIATE')
          return new FolderLock(db, `${path}.note`)
        } catch (error) {
          if (!isBusy(error)) throw error
          await wait(Math.random() * Math.min(5 + attempt * 2, 50))
        }
      }
    } catch (error) {
      db.close()
      throw error
    }
  }

  /** Written before the first file is: whoever comes after a death in the middle finds it. */
  begin(taking: TakingBack): void {
    const temporary = `${this.#note}.new`
    writeFileSync(temporary, JSON.stringify(taking), { mode: 0o600 })
    renameSync(temporary, this.#note)
  }

  done(): void {
    rmSync(this.#note, { force: true })
    this.left = undefined
  }

  [Symbol.dispose](): void {
    this.#db.close()
  }
}

/** One for all runtimes of this user, whatever they keep and wherever; beside what this one keeps where there is no home to write to. */
function lockFolder(kept: string): string {
  try {
    return privateFolder(join(homeFolder(), 'locks'))
  } catch {
    return privateFolder(join(kept, 'locks'))
  }
}

function readNote(path: string): TakingBack | undefined {
  try {
    return JSON.parse(readFileSync(path, 'utf8')) as TakingBack
  } catch {
    return undefined
  }
}
