import type { Digest } from '../../base/digest.ts'
import type { FileChange } from '../../session/chunk.ts'

/** The files of sessions, by the digests that their chunks record. */
export interface KeptFiles {
  /** Where they are kept. */
  readonly folder: string
  has(tree: Digest): Promise<boolean>
  /** How one tree differs from another. */
  changes(from: Digest, to: Digest): Promise<readonly FileChange[]>
  /** Makes a folder equal to a tree. What was there is kept; its tree is returned. */
  checkout(tree: Digest, folder: string): Promise<Digest>
}
