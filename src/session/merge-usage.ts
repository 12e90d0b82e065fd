import type { Digest } from '../base/digest.ts'
import type { Chunk, ChunkBody, LeftOutChunk } from './chunk.ts'
import { identityOf } from './identity.ts'
import { parseRecordedChunk } from './parse.ts'
import { addUsage, noUsage, type Usage } from './usage.ts'

/**
 * Whose usage a session counts already. A merge that leaves chunks out keeps what they cost in its own record; when such a
 * chunk is merged after all, or two merges left out the same one, it must still count once.
 */
export class CountedUsage {
  readonly #counted = new Set<Digest>()

  constructor(kept: Iterable<Chunk>) {
    for (const chunk of kept) if (chunk.kind !== 'merge') this.#counted.add(identityOf(chunk))
  }

  /** The record of an earlier merge without what counts elsewhere; undefined when it can stay as it is. */
  recount(merge: Chunk<'merge'>): ChunkBody | undefined {
    const before = merge.leftOut ?? []
    const left = this.#new(before)
    if (left.length === before.length) return undefined
    const { usage: _, leftOut: __, ...rest } = merge
    // Parsed like any chunk, so that it is frozen and in canonical order all the way down.
    return parseRecordedChunk({ ...rest, ...spentOn(left), origin: identityOf(merge) }, 'merge record')
  }

  /** For the record of this merge: what the sides spent that counts nowhere yet. */
  leftOut(sides: Iterable<Chunk>): { usage?: Usage; leftOut?: readonly LeftOutChunk[] } {
    const entries: LeftOutChunk[] = []
    for (const chunk of sides) entries.push(...this.#new(spentBy(chunk)))
    return spentOn(entries)
  }

  #new(entries: readonly LeftOutChunk[]): LeftOutChunk[] {
    const left = entries.filter(entry => !this.#counted.has(entry.chunk))
    for (const entry of left) this.#counted.add(entry.chunk)
    return left
  }
}

function spentBy(chunk: Chunk): readonly LeftOutChunk[] {
  if (chunk.kind === 'merge') return chunk.leftOut ?? []
  if (!('usage' in chunk) || chunk.usage === undefined) return []
  const isInside = chunk.kind === 'tool-result' || chunk.kind === 'effect'
  return [{ chunk: identityOf(chunk), usage: chunk.usage, ...(isInside && { inside: true as const }) }]
}

function spentOn(entries: readonly LeftOutChunk[]): { usage?: Usage; leftOut?: readonly LeftOutChunk[] } {
  if (entries.length === 0) return {}
  return { usage: entries.reduce((sum, { usage }) => addUsage(sum, usage), noUsage), leftOut: entries }
}
