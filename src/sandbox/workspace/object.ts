import { createHash } from 'node:crypto'
import { inflateSync } from 'node:zlib'
import type { Digest } from '../../base/digest.ts'
import { RathError, show } from '../../base/errors.ts'

/** What a workspace is kept as, in git's words. */
export type ObjectKind = 'blob' | 'tree'

export function idOf(kind: ObjectKind, content: Uint8Array): Digest {
  return createHash('sha256').update(`${kind} ${content.length}\0`).update(content).digest('hex')
}

/** The id that a folder with nothing in it has. */
export const emptyTree: Digest = '6ef19b41225c5369f1c104d45d8d85efa9b057b53b14b4b9b939dd74decc5321'
/** The id of a file with nothing in it. */
export const emptyBlob: Digest = '473a0f4c3be8a93681a267e3b1e9a7dcda1185436fe141f7749120a303721813'

export function checkId(id: Digest): void {
  if (/^[0-9a-f]{64}$/.test(id)) return
  throw new RathError('invalid-argument', `${show(id)} is no id of a tree or a file: it has 64 hex digits.`)
}

export interface Found {
  readonly kind: ObjectKind
  readonly content: Buffer
}

export function checkContent(id: Digest, found: Found, where: string): Found {
  const actual = idOf(found.kind, found.content)
  if (actual === id) return found
  throw damaged(id, where, `its content is that of ${actual}`)
}

export function inflate(id: Digest, bytes: Uint8Array, where: string): Buffer {
  try {
    return inflateSync(bytes)
  } catch (error) {
    throw damaged(id, where, (error as Error).message)
  }
}

export function damaged(id: Digest, where: string, why: string): RathError {
  return new RathError(
    'store-corrupt',
    `The object ${id} in ${where} is damaged: ${why}. Bring the file back from a backup, or remove it and take the snapshot again.`,
    { data: { id, where } },
  )
}
