import { fingerprintOf } from '../signature.ts'
import { type ByteSource, byteLines } from './byte-lines.ts'
import { BundleChecker } from './checker.ts'
import type { BundleVerification } from './verification.ts'

export interface VerifyOptions {
  /** Public keys in PEM. With any, a bundle that none of them has signed is not in order. */
  readonly keys?: readonly string[]
}

/**
 * Recomputes every digest of a bundle or a session file from the file alone, line by line. Any byte of a bundle that differs is found: each
 * record is covered by its digest or its chunk id, has only one way to be written, and the last one seals all bytes before it. Whoever can
 * rewrite the whole file can compute new digests, too: a signature is what tells then.
 */
export async function verifyBundle(
  source: ByteSource,
  options: VerifyOptions = {},
): Promise<BundleVerification> {
  const checker = new BundleChecker((options.keys ?? []).map(fingerprintOf))
  for await (const line of byteLines(source)) {
    checker.line(line)
    if (checker.problem) break
  }
  return checker.result()
}
