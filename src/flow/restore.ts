import type { Digest } from '../base/digest.ts'
import { RathError, show } from '../base/errors.ts'
import type { Chunk, ChunkInput } from '../session/chunk.ts'
import { lineage } from '../session/lineage.ts'
import { type Session, sessionOf, valueFrom } from '../session/session.ts'

/**
 * The session as if a compression had not happened: up to the chunk before it, then everything that came after. Without an id, the last
 * one. What came after gets new ids, as it now stands on another history; a note says which summary went and what it had cost. To
 * drop what came after too, rewind to the chunk before it.
 */
export function restore(session: Session, compressId?: string): Session {
  const compress = findCompress(session, compressId)
  const ids = new Map<Digest, Digest>()
  // A summary has something before it: what it stands for.
  let restored = session.rewind(compress.index - 1).append({
    kind: 'note',
    name: 'restored',
    data: { compress: compress.id, ...(compress.usage && { usage: { ...compress.usage } }) },
  })
  for (const chunk of session.chunks.slice(compress.index + 1)) {
    restored = restored.append(again(chunk, compress, ids))
    const made = restored.chunks.at(-1) as Chunk
    ids.set(chunk.id, made.id)
    if (chunk.origin) ids.set(chunk.origin, made.id)
  }
  // The steps in between are nobody's sessions.
  return sessionOf({
    ...valueFrom(restored),
    lineage: lineage('restore', [session.id], {}, valueFrom(restored).lineage.lane),
  })
}

/** A chunk's own fields, for another history. A later summary names what it replaced by the ids that those have there. */
function again(chunk: Chunk, compress: Chunk<'compress'>, ids: ReadonlyMap<Digest, Digest>): ChunkInput {
  const { id: _, state: __, index: ___, text: ____, branch: _____, origin: ______, ...body } = chunk
  if (body.kind !== 'compress') return body as ChunkInput
  const replaced = body.replaced.flatMap(id =>
    id === compress.id || id === compress.origin ? compress.replaced : [ids.get(id) ?? id],
  )
  return { ...body, replaced }
}

function findCompress(session: Session, id: string | undefined): Chunk<'compress'> {
  const found = session.chunks.findLast(
    chunk => chunk.kind === 'compress' && (id === undefined || chunk.id === id || chunk.origin === id),
  )
  if (found?.kind === 'compress') return found
  throw unknown(session, id)
}

function unknown(session: Session, id: string | undefined): RathError {
  const ids = session.chunks.flatMap(chunk => (chunk.kind === 'compress' ? [chunk.id] : []))
  return new RathError(
    'unknown-chunk',
    `There is no compression ${id === undefined ? '' : `${show(id)} `}to undo; this session has ${ids.join(', ') || 'none'}.`,
  )
}
