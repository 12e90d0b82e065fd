import { chunksFrom, lengthOf, previousOf } from '../chain.ts'
import type { Chunk } from '../chunk.ts'
import type { SessionValue } from '../value.ts'
import { chunkRecord, endRecord, sessionRecord, toLine } from './format.ts'

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
    const chunks = chunksFrom(value.tip, lengthOf(after))
    yield toLine(sessionRecord(value, after?.id, chunks))
    for (const chunk of chunks) {
      written.add(chunk)
      yield toLine(chunkRecord(chunk))
    }
    yield toLine(endRecord(value.id, value.tip?.id ?? null, lengthOf(value.tip)))
  }
}

function lastWritten(tip: Chunk | undefined, written: ReadonlySet<Chunk>): Chunk | undefined {
  if (written.size === 0) return undefined
  let here = tip
  while (here && !written.has(here)) here = previousOf(here)
  return here
}
