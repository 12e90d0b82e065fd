import type { HostFolder } from '../../spec.ts'

/** The files that a branch starts with. */
export interface ForkBase {
  /** What the files are, as a digest of them: bases of the same tree are made once. */
  readonly tree: string
  /** Writes the whole tree into an empty folder. */
  fill(folder: string): Promise<void>
  /** Another tree that may be here already, from which this one is reached by `delta`. */
  readonly near?: string
  /** Turns a folder that holds the files of `near` into one that holds those of `tree`: writes what differs, removes what is gone. */
  delta?(folder: string): Promise<void>
}

export type ForkMethodName = 'overlay' | 'btrfs' | 'reflink' | 'copy'

/** One way of giving a branch files of its own. */
export interface ForkMethod {
  readonly name: ForkMethodName
  /** Tries it in an empty folder of the file system that is meant, which the caller removes. Never throws. */
  probe(folder: string): Promise<Probe>
  /** Ready to work in `area`, an empty folder that nobody else uses. */
  start(area: string): Promise<Forker>
}

export interface Probe {
  readonly available: boolean
  /** Why not, and what would help. */
  readonly reason?: string
}

/** A method at work. */
export interface Forker {
  /** Makes a base: from `near` by its delta where that is cheaper, else whole. Nobody writes to it from then on. */
  freeze(base: ForkBase, near?: Frozen): Promise<Frozen>
  branch(base: Frozen): Promise<Branch>
  /** Ends what runs and removes every base; the branches are gone before. */
  close(): Promise<void>
  /** As much of it as can be done when this process exits. */
  abandon(): void
}

/** The files of a base, in a folder or in layers of them. */
export interface Frozen {
  /** The base without whose files these are not whole. */
  readonly on?: Frozen
  remove(): Promise<void>
}

export interface Branch {
  readonly host: HostFolder
  changed?(): Promise<readonly string[] | undefined>
  remove(): Promise<void>
}
