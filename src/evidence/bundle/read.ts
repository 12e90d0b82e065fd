import { RathError } from '../../base/errors.ts'
import type { Session } from '../../session/session.ts'
import { readSessions } from '../../session/stream.ts'
import type { JournalEntry } from '../../store/spec.ts'
import { fingerprintOf } from '../signature.ts'
import { type ByteSource, byteLines } from './byte-lines.ts'
import { BundleChecker } from './checker.ts'
import type { BundledRun } from './format.ts'
import type { BundleVerification } from './verification.ts'
import type { VerifyOptions } from './verify.ts'

/** What a bundle, or a session file, holds. */
export interface Bundle {
  /** In the order of the file: prompts and parents before what came of them. */
  readonly sessions: readonly Session[]
  readonly runs: readonly BundleRun[]
  readonly verification: BundleVerification
}

export interface BundleRun {
  readonly run: BundledRun
  readonly journal: readonly JournalEntry[]
}

/** Reads a bundle and verifies it on the way. One that was altered is refused with `bundle-altered`; `verifyBundle` says where. */
export async function readBundle(source: ByteSource, options: VerifyOptions = {}): Promise<Bundle> {
  const checker = new BundleChecker((options.keys ?? []).map(fingerprintOf))
  const runs: { run: BundledRun; journal: JournalEntry[] }[] = []
  const decoder = new TextDecoder()

  async function* sessionLines(): AsyncGenerator<string> {
    for await (const line of byteLines(source)) {
      const record = checker.line(line)
      refuseAltered(checker.problem)
      if (record?.type === 'run') runs.push({ run: record.run, journal: [] })
      if (record?.type === 'entry') runs.at(-1)?.journal.push(record.entry)
      const isSession = record?.type === 'session' || record?.type === 'chunk' || record?.type === 'end'
      // An empty line in place of what is not of a session, so that errors name the line of the file.
      yield isSession ? `${decoder.decode(line.bytes)}\n` : '\n'
    }
  }

  const sessions: Session[] = []
  for await (const session of readSessions(sessionLines())) sessions.push(session)
  const verification = checker.result()
  refuseAltered(verification.problem)
  return { sessions, runs, verification }
}

function refuseAltered(problem: BundleVerification['problem']): void {
  if (!problem) return
  throw new RathError(
    'bundle-altered',
    `The bundle is not as it was written. ${problem.reason} Get it again.`,
    {
      data: { ...problem },
    },
  )
}
