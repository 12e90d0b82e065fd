import { sha256 as portableSha256 } from '@noble/hashes/sha2.js'
import { bytesToHex } from '@noble/hashes/utils.js'
import { canonicalJson, canonicalJsonOfOrdered } from './json.ts'

/** A sha256 in lower-case hex. */
export type Digest = string

interface NodeCrypto {
  hash?(algorithm: 'sha256', data: string | Uint8Array): string
}
interface NodeProcess {
  getBuiltinModule?(name: 'crypto'): NodeCrypto | undefined
}

// Node's own sha256 where there is one. Asked for at run time and not imported, so that a bundler building for
// a browser finds nothing to resolve.
const native = (globalThis as { process?: NodeProcess }).process?.getBuiltinModule?.('crypto')

export const sha256: (data: string | Uint8Array) => Digest = native?.hash
  ? data => (native.hash as NonNullable<NodeCrypto['hash']>)('sha256', data)
  : sha256Portable

/** The implementation for places without `node:crypto`; the same digests, several times slower. */
export function sha256Portable(data: string | Uint8Array): Digest {
  return bytesToHex(portableSha256(typeof data === 'string' ? new TextEncoder().encode(data) : data))
}

/** The digest of a value's canonical JSON. */
export function digestOf(value: unknown): Digest {
  return sha256(canonicalJson(value))
}

/** The same, several times faster, of data whose keys were written in order; see `canonicalJsonOfOrdered`. */
export function digestOfOrdered(value: unknown): Digest {
  return sha256(canonicalJsonOfOrdered(value))
}
