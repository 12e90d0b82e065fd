import { createPrivateKey, createPublicKey, type KeyObject, sign, verify } from 'node:crypto'
import { type Digest, sha256 } from '../base/digest.ts'
import { RathError } from '../base/errors.ts'
import { canonicalJson } from '../base/json.ts'
import { seal } from '../session/jsonl/format.ts'
import { bundleName, bundleVersion, type CloseRecord, type SignatureRecord } from './bundle/format.ts'

/** What signs a bundle. */
export interface SigningKey {
  /** An Ed25519 private key, PKCS 8 in PEM. */
  readonly privateKey: string
  /** Who signs, for people: a name or an address. Part of what is signed. */
  readonly by?: string
}

export interface SignatureReport {
  /** Of the public key: sha256 of its SPKI bytes. */
  readonly fingerprint: Digest
  readonly at: number
  readonly by?: string
  /** Whether the key has signed exactly this bundle. */
  readonly valid: boolean
  /** Whether the key is one of those that were asked for; false when none were. */
  readonly trusted: boolean
}

/** A signature over the heads of a bundle, and through its close record over every byte of it. */
export function signatureOf(close: CloseRecord, key: SigningKey, at: number): SignatureRecord {
  const privateKey = ed25519(() => createPrivateKey(key.privateKey), 'private')
  const { by } = key
  const signature = sign(null, statement(close, at, by), privateKey).toString('base64')
  return seal({
    type: 'signature',
    algorithm: 'ed25519',
    key: spki(createPublicKey(privateKey)).toString('base64'),
    at,
    ...(by !== undefined && { by }),
    signature,
  } as const)
}

export function checkSignature(
  record: SignatureRecord,
  close: CloseRecord,
  trusted: readonly Digest[],
): SignatureReport {
  const { at, by } = record
  const der = Buffer.from(record.key, 'base64')
  const fingerprint = sha256(der)
  let valid = false
  try {
    const key = createPublicKey({ key: der, format: 'der', type: 'spki' })
    const bytes = Buffer.from(record.signature, 'base64')
    valid = key.asymmetricKeyType === 'ed25519' && verify(null, statement(close, at, by), key, bytes)
  } catch {
    // No key at all: then it has signed nothing.
  }
  return {
    fingerprint,
    at,
    ...(by !== undefined && { by }),
    valid,
    trusted: valid && trusted.includes(fingerprint),
  }
}

/** What names a public key. */
export function fingerprintOf(publicKey: string): Digest {
  return sha256(spki(ed25519(() => createPublicKey(publicKey), 'public')))
}

function statement(close: CloseRecord, at: number, by: string | undefined): Uint8Array {
  const { heads, runs, digest } = close
  const said = { format: bundleName, version: bundleVersion, heads, runs, close: digest, at }
  return new TextEncoder().encode(canonicalJson(by === undefined ? said : { ...said, by }))
}

function spki(key: KeyObject): Buffer {
  return key.export({ format: 'der', type: 'spki' })
}

function ed25519(make: () => KeyObject, which: 'private' | 'public'): KeyObject {
  let key: KeyObject | undefined
  try {
    key = make()
  } catch (cause) {
    // The cause of a failed parse never holds the key itself.
    throw notAKey(which, cause)
  }
  if (key.asymmetricKeyType !== 'ed25519') throw notAKey(which)
  return key
}

function notAKey(which: string, cause?: unknown): RathError {
  return new RathError(
    'invalid-argument',
    `This is no Ed25519 ${which} key in PEM. Make a pair with makeKeys, or with openssl genpkey -algorithm ed25519.`,
    { cause },
  )
}
