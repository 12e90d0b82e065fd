import { chunksFrom, lengthOf, previousOf } from '../chain.ts'
import type { Chunk, ChunkBody } from '../chunk.ts'
import type { SessionValue } from '../value.ts'
import { formatName, formatVersion, seal, toLine } from './format.ts'

export function writeSession(value: SessionValue): string {
  let text = ''
  for (const line of writeLines([value])) text += line
  return text
}

/** The lines of a file that holds these sessions, history they share written once. */
export function* writeLines(values: Iterable<SessionValue>): Generator<string, void, undefined> {
  const written = new Set<Chunk>()
  for (const value of values) {
    const after = lastWritten(value.tip, written)
    const { id, branch, lineage } = value
    const opening = {
      type: 'session',
      format: formatName,
      version: formatVersion,
      id,
      branch,
      lineage,
    } as const
    yield toLine(seal(after ? { ...opening, after: after.id } : opening))
    for (const chunk of chunksFrom(value.tip, lengthOf(after))) {
      written.add(chunk)
      yield toLine({ type: 'chunk', id: chunk.id, chunk: { ...chunk } as ChunkBody })
    }
    yield toLine(
      seal({ type: 'end', session: id, head: value.tip?.id ?? null, length: lengthOf(value.tip) } as const),
    )
  }
}

function lastWritten(tip: Chunk | undefined, written: ReadonlySet<Chunk>): Chunk | undefined {
  if (written.size === 0) return undefined
  let here = tip
  while (here && !written.has(here)) here = previousOf(here)
  return here
}
