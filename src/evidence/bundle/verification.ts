import type { Digest } from '../../base/digest.ts'
import { oneLine } from '../one-line.ts'
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

export function printVerification(verification: BundleVerification): string {
  const { ok, problem, lines, sessions, chunks, runs, entries, absent, signatures, format } = verification
  const journals = runs > 0 ? `, ${runs} runs with ${entries} journal entries` : ''
  const counted = `${lines} lines, ${sessions} sessions, ${chunks} chunks${journals}`
  if (!ok && problem) {
    const where = [
      problem.session && `session ${problem.session}`,
      problem.index !== undefined && `chunk ${problem.index}`,
      problem.run && `run ${problem.run}`,
    ].filter(Boolean)
    return [`NOT IN ORDER: ${oneLine(problem.reason, 400)}`, ...where.map(part => `  in ${part}`)].join('\n')
  }
  return [
    `In order: ${counted}. Every digest was recomputed from the file.`,
    ...signatures.map(signatureLine),
    ...(absent.length > 0 ? [`  ${absent.length} sessions are named in it and not part of it.`] : []),
    ...(signatures.length === 0
      ? [`  Not signed: this shows that nothing in the file was altered, not who wrote it.`]
      : []),
    ...(format === 'openrath/session'
      ? ['  A session file has no seal over all of it: whole sessions may be missing.']
      : []),
  ].join('\n')
}

function signatureLine({ fingerprint, by, at, trusted }: SignatureReport): string {
  const who = by === undefined ? '' : ` as ${oneLine(by)}`
  const known = trusted ? 'a key you gave' : 'a key that nobody vouched for'
  return `  Signed${who} on ${new Date(at).toISOString()} with ${fingerprint.slice(0, 16)}, ${known}.`
}
