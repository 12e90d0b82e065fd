import { type Digest, digestOf } from '../base/digest.ts'
import type { Chunk, ChunkBody } from './chunk.ts'

/**
 * A chunk's `id`: the digest of everything it records and of its predecessor's id, so that no byte before or in it
 * can change without changing it.
 */
export function identify(body: ChunkBody, previous: Digest | undefined): Digest {
  return digestOf({ ...body, previous: previous ?? null })
}

/** What stays the same about a chunk however often it is merged. */
export function identityOf(chunk: Chunk): Digest {
  return chunk.origin ?? chunk.id
}
