import type { Digest } from '../../base/digest.ts'
import type { FileChange } from '../../session/chunk.ts'

/** A folder whose files can be kept and put back; `Workspace` is one. */
export interface KeptFolder {
  /** The tree that was last kept or put back. */
  readonly tree: Digest | undefined
  snapshot(paths?: readonly string[]): Promise<{ readonly tree: Digest }>
  restore(tree: Digest): Promise<unknown>
  close(): Promise<void>
}

/** The folder of a branch, which may know by itself what differs from what it began with. */
export interface BranchFolder {
  changed(): Promise<readonly string[] | undefined>
  close(): Promise<void>
}

/** The files of a place, as they were last seen and as they are. */
export class PlaceFiles {
  readonly #workspace: KeptFolder
  readonly #folder: BranchFolder | undefined
  readonly #changes: (from: Digest, to: Digest) => Promise<readonly FileChange[]>
  /** The tree that was seen here when the place was opened, or first. */
  first: Digest | undefined

  constructor(
    workspace: KeptFolder,
    folder: BranchFolder | undefined,
    changes: (from: Digest, to: Digest) => Promise<readonly FileChange[]>,
  ) {
    this.#workspace = workspace
    this.#folder = folder
    this.#changes = changes
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

  async restore(tree: Digest): Promise<void> {
    await this.#workspace.restore(tree)
  }

  async close(): Promise<void> {
    await this.#workspace.close()
    await this.#folder?.close()
  }
}
