import { RathError, show } from '../base/errors.ts'
import { copyOf, link, previousOf, relink } from '../session/chain.ts'
import type { Chunk } from '../session/chunk.ts'
import { identityOf } from '../session/identity.ts'
import { lineage } from '../session/lineage.ts'
import { withField } from '../session/parse.ts'
import { type Session, sessionOf, valueFrom } from '../session/session.ts'
import { append } from '../session/value.ts'

/**
 * The session as if a compression had not happened: up to the chunk before it, then everything that came after. Without an id, the last
 * one. What came after gets new ids, as it now stands on another history, and counts once when both are merged; a note says which
 * summary went and what it had cost. To drop what came after too, rewind to the chunk before it.
 */
export function restore(session: Session, compressId?: string): Session {
  const compress = findCompress(session, compressId)
  const before = { ...valueFrom(session.rewind(compress.index)), tip: previousOf(compress) }
  const note = {
    kind: 'note',
    name: 'restored',
    data: { compress: compress.id, ...(compress.usage && { usage: { ...compress.usage } }) },
  }
  const noted = append(before, [note])
  let { tip } = noted
  for (const chunk of session.chunks.slice(compress.index + 1)) tip = again(tip, chunk, compress)
  return sessionOf({ ...noted, tip, lineage: lineage('restore', [session.id], {}, noted.lineage.lane) })
}

/** A chunk on another history. A later summary that named the one that went names what that one stood for. */
function again(tip: Chunk | undefined, chunk: Chunk, gone: Chunk<'compress'>): Chunk {
  if (chunk.kind !== 'compress') return relink(tip, chunk)
  const isGone = (id: string) => id === gone.id || id === gone.origin
  const replaced = chunk.replaced.flatMap(id => (isGone(id) ? gone.replaced : [id]))
  const body = withField(chunk, { replaced: Object.freeze(replaced), origin: identityOf(chunk) })
  return copyOf(chunk, link(tip, body))
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
