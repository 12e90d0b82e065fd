import type { Digest } from '../base/digest.ts'
import { RathError, show } from '../base/errors.ts'
import type { Chunk, FileChange, MergeConflict } from './chunk.ts'
import type { WorkedIn } from './fold.ts'
import type { Lane } from './lane.ts'

/**
 * What a session needs done with files, which this layer cannot do itself: it is pure and runs in a browser. The runtime that a session went
 * through hands it down with the session, and whatever is made of the session keeps it.
 */
export interface SessionFiles {
  /**
   * Merges trees three ways and brings the result to the files of `into`. Refused with `merge-conflict` and the paths, with nothing
   * written, when they do not fit and `onConflict` does not settle it.
   */
  join(request: JoinRequest): Promise<JoinedFiles>
  /** How one tree differs from another. `packs` are those of the store that hold them. */
  changes(from: Digest, to: Digest, packs?: readonly Digest[]): Promise<readonly FileChange[]>
}

export interface JoinRequest {
  /** The files of the shared history, when a call in it may have changed some. */
  readonly base: Digest | undefined
  /** Else: what the first call on a side found. */
  readonly found: Digest | undefined
  readonly sides: readonly { readonly tree: Digest; readonly branch: string; readonly lane: Lane }[]
  /** Packs of the store that hold all of these trees, where they were sent there. */
  readonly packs?: readonly Digest[]
  /** The lane of the merged session, and the chunk that placed it. */
  readonly into: Lane
  readonly placed: Chunk<'placement'> | undefined
  /** The folder that they worked in, where one of them worked in the placed one itself. */
  readonly worked?: WorkedIn | undefined
  readonly onConflict: OnConflict
}

export interface JoinedFiles {
  readonly tree: Digest
  /** Packs of the store that hold it. */
  readonly packs?: readonly Digest[] | undefined
  readonly conflicts: readonly MergeConflict[]
}

/**
 * What a merge does where both sides changed the same lines: refuse with the list of paths (default), take one side's file, keep both with
 * markers, or what a function says of each.
 */
export type OnConflict = 'refuse' | 'ours' | 'theirs' | 'markers' | SettleConflict

export type SettleConflict = (conflict: FileConflict) => Settlement | Promise<Settlement>

/** A file that two sides changed differently. What a side has deleted, or never had, is null. */
export interface FileConflict {
  readonly path: string
  /** `content`, `add-add`, `modify-delete`, `binary`, `link`, `type`, `mode` or `not-kept`. */
  readonly kind: string
  readonly base: Uint8Array | null
  readonly ours: Uint8Array | null
  readonly theirs: Uint8Array | null
}

/** One side's file, both with markers, other bytes, or no file; with `by`, who decided. */
export type Settlement =
  | 'ours'
  | 'theirs'
  | 'markers'
  | { readonly content: string | Uint8Array | null; readonly by?: string }
  | { readonly take: 'ours' | 'theirs' | 'markers'; readonly by?: string }

/** The option as it was given to `what`, checked. */
export function checkOnConflict(onConflict: OnConflict = 'refuse', what: string): OnConflict {
  const words: readonly unknown[] = ['refuse', 'ours', 'theirs', 'markers']
  if (typeof onConflict === 'function' || words.includes(onConflict)) return onConflict
  throw new RathError(
    'invalid-argument',
    `${what}: onConflict is 'refuse', 'ours', 'theirs', 'markers' or a function, not ${show(onConflict)}.`,
  )
}
