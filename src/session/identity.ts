import { type Digest, sha256 } from '../base/digest.ts'
import { canonicalJsonOfOrdered } from '../base/json.ts'
import type { Chunk, ChunkBody } from './chunk.ts'

/**
 * A chunk's `id`: the digest of the canonical JSON of `[previous id, chunk]`, so that no byte before or in it can change
 * without changing it.
 */
export function identify(body: ChunkBody, previous: Digest | undefined): Digest {
  return sha256(canonicalJsonOfOrdered([previous ?? null, toWrite(body)]))
}

/** The id together with the chunk's own JSON text, for who needs both: writing the text is most of the work. */
export function identifyText(body: ChunkBody, previous: Digest | null): { id: Digest; text: string } {
  const text = canonicalJsonOfOrdered(toWrite(body))
  return { id: sha256(`[${previous === null ? 'null' : `"${previous}"`},${text}]`), text }
}

function toWrite(body: ChunkBody): object {
  const chunk = { ...body } as { content?: readonly unknown[] }
  // V8 writes an array that is not frozen in half the time.
  if (chunk.content) chunk.content = [...chunk.content]
  return chunk
}

/** What stays the same about a chunk however often it is merged. */
export function identityOf(chunk: Chunk): Digest {
  return chunk.origin ?? chunk.id
}
