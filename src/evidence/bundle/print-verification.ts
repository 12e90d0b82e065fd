import { oneLine } from '../one-line.ts'
import type { SignatureReport } from '../signature.ts'
import type { BundleVerification } from './verification.ts'

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
