import { type Digest, sha256 } from '../base/digest.ts'
import { canonicalJsonOfOrdered } from '../base/json.ts'
import type { Chunk, ChunkBody } from './chunk.ts'

/**
 * A chunk's `id`: the digest of the canonical JSON of `[previous id, chunk]`, so that no byte before or in it can change
 * without changing it.
 */
export function identify(body: ChunkBody, previous: Digest | undefined): Digest {
  return identifyText(writeBody(body), previous ?? null)
}

/** The same for who has the chunk's own JSON text: writing it is most of the work. */
export function identifyText(text: string, previous: Digest | null): Digest {
  return sha256(previous === null ? `[null,${text}]` : `["${previous}",${text}]`)
}

/** A chunk's own canonical JSON. */
export function writeBody(body: ChunkBody): string {
  const chunk = { ...body } as { content?: readonly unknown[] }
  // V8 writes an array that is not frozen in half the time.
  if (chunk.content) chunk.content = [...chunk.content]
  return canonicalJsonOfOrdered(chunk)
}

/** What stays the same about a chunk however often it is merged. */
export function identityOf(chunk: Chunk): Digest {
  return chunk.origin ?? chunk.id
}
