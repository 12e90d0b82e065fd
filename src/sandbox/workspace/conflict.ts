import type { Digest } from '../../base/digest.ts'

/**
 * A path that both sides changed, each in its own way:
 * `content` lines that overlap; `add-add` both made it; `modify-delete` one changed what the other removed; `binary` and `link` changed on both
 * sides and cannot be merged by lines; `type` a file on one side and a folder or link on the other; `mode` permissions; `not-kept` something that
 * snapshots only describe.
 */
export type ConflictKind =
  | 'content'
  | 'add-add'
  | 'modify-delete'
  | 'binary'
  | 'link'
  | 'type'
  | 'mode'
  | 'not-kept'

/** Ids are those of the objects in the store, undefined where the path is not there; on `type`, one may be a tree. */
export interface Conflict {
  readonly path: string
  readonly kind: ConflictKind
  /** Which of `theirs`, from 0. */
  readonly branch: number
  readonly base: Digest | undefined
  readonly ours: Digest | undefined
  readonly theirs: Digest | undefined
  /** The file with the lines of both sides between markers, where there are lines. */
  readonly marked?: Digest
}

/** `refuse` leaves it open; `markers`, where there are no lines to mark, takes the side that still has the path, ours first. */
export type Settlement =
  | 'refuse'
  | 'ours'
  | 'theirs'
  | 'markers'
  | 'delete'
  | { readonly content: string | Uint8Array }

export type Settle =
  | 'refuse'
  | 'ours'
  | 'theirs'
  | 'markers'
  | ((conflict: Conflict) => Settlement | Promise<Settlement>)

/** How a conflict was settled, for the record. */
export interface Settled {
  readonly path: string
  readonly kind: ConflictKind
  readonly branch: number
  readonly settled: 'ours' | 'theirs' | 'markers' | 'delete' | 'content'
}
