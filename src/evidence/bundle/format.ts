import type { Digest } from '../../base/digest.ts'
import { type FormatRecord, toLine } from '../../session/jsonl/format.ts'
import type { JournalEntry, RunRow } from '../../store/spec.ts'

/** The bundle format, version 1; docs/format/bundle.md is its specification. */
export const bundleName = 'openrath/bundle'
export const bundleVersion = 1

/** The first line. */
export interface OpeningRecord {
  readonly type: 'bundle'
  readonly format: typeof bundleName
  readonly version: number
  readonly at: number
  readonly digest: Digest
}

/** A run as it stood, without who drove it. */
export type BundledRun = Pick<RunRow, 'id' | 'status' | 'input' | 'output' | 'data' | 'created' | 'updated'>

export interface RunLine {
  readonly type: 'run'
  readonly run: BundledRun
  readonly digest: Digest
}

/** An entry of the journal of the last run record. */
export interface EntryLine {
  readonly type: 'entry'
  readonly entry: JournalEntry
  readonly digest: Digest
}

export interface BundleHead {
  readonly session: string
  readonly head: Digest | null
  /** Digest of its session record: id, branch and lineage. */
  readonly record: Digest
}

export interface BundledJournal {
  readonly run: string
  readonly entries: number
  /** Digest of the list of digests of its record and its entries. */
  readonly digest: Digest
}

/** Says what the bundle holds, and seals every byte before it. */
export interface CloseRecord {
  readonly type: 'close'
  readonly heads: readonly BundleHead[]
  readonly runs: readonly BundledJournal[]
  /** Sessions that others in here name as a parent or a prompt, and that the store did not have. */
  readonly absent: readonly string[]
  /** How many lines come before this one, and the sha256 of their bytes. */
  readonly lines: number
  readonly sha256: Digest
  readonly digest: Digest
}

/** Follows the close record, and covers it; there may be several. */
export interface SignatureRecord {
  readonly type: 'signature'
  readonly algorithm: 'ed25519'
  /** The public key, SPKI in base64. */
  readonly key: string
  readonly at: number
  readonly by?: string
  /** Base64. */
  readonly signature: string
  readonly digest: Digest
}

export type BundleRecord = FormatRecord | OpeningRecord | RunLine | EntryLine | CloseRecord | SignatureRecord

export function bundleLine(record: BundleRecord): string {
  // The one way a record is written is that of the session format.
  return toLine(record as FormatRecord)
}
