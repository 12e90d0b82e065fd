import type { Digest } from '../../base/digest.ts'
import type { SignatureReport } from '../signature.ts'
import type { BundleHead } from './format.ts'

/** What a file proves by itself. `problem` names the first thing that is not as it was written. */
export interface BundleVerification {
  readonly ok: boolean
  /** `openrath/bundle`, or `openrath/session` for a session file, which has no seal over all of it. */
  readonly format: string
  readonly lines: number
  readonly sessions: number
  readonly chunks: number
  readonly runs: number
  readonly entries: number
  readonly heads: readonly BundleHead[]
  /** Sessions that are named in it and not part of it. */
  readonly absent: readonly string[]
  readonly signatures: readonly SignatureReport[]
  readonly problem?: BundleProblem
}

export interface BundleProblem {
  /** From 1. */
  readonly line: number
  readonly reason: string
  readonly session?: string
  /** The chunk's place in its session, and the id it is recorded under. */
  readonly index?: number
  readonly chunk?: Digest
  readonly run?: string
}
