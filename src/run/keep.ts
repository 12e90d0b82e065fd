import { RathError, show } from '../base/errors.ts'
import type { Chunk } from '../session/chunk.ts'
import { reachesModel } from '../session/reaches-model.ts'
import type { Session } from '../session/session.ts'
import { standing } from '../session/summary.ts'
import { estimateChunk } from './estimate.ts'

/**
 * What a compression leaves as it is, counted from the end: at least so many chunks of those that a model sees, or as many as fit into so
 * many tokens (four characters each). A tool call and its results stay together, on either side.
 */
export type Keep = number | { readonly tokens: number }

export function checkKeep(keep: Keep): Keep {
  const isCount = typeof keep === 'number' && Number.isSafeInteger(keep) && keep >= 0
  const isBudget = typeof keep === 'object' && keep !== null && keep.tokens >= 0
  if (isCount || isBudget) return keep
  throw new RathError(
    'invalid-argument',
    `keep is a number of chunks or { tokens }, each at least 0, not ${show(keep)}.`,
  )
}

/**
 * The chunks that a summary would stand for, in the order of the view. Instructions of the session (`system`) stay, and so does a turn
 * whose calls are not all answered: its results are still to come.
 */
export function toReplace(session: Session, keep: Keep): readonly Chunk[] {
  const groups = groupsOf([...standing(session.chunks)].filter(isReplaceable))
  if (session.pending.some(({ kind }) => kind === 'tool-call')) keepOpenTurn(groups, session)
  let left = typeof keep === 'number' ? keep : keep.tokens
  while (left > 0 && groups.length > 0) {
    const group = groups.at(-1) as Chunk[]
    if (typeof keep === 'number') left -= group.length
    else left -= group.reduce((sum, chunk) => sum + estimateChunk(chunk), 0)
    // A budget is not gone over; a number of chunks is, by the rest of a turn.
    if (typeof keep !== 'number' && left < 0) break
    groups.pop()
  }
  return groups.flat()
}

function isReplaceable(chunk: Chunk): boolean {
  return chunk.kind !== 'system' && reachesModel(chunk)
}

/** Chunks that must not be told apart: an answer with its calls, up to the last of their results. */
function groupsOf(chunks: readonly Chunk[]): Chunk[][] {
  const groups: Chunk[][] = []
  for (let i = 0; i < chunks.length; ) {
    const end = endOfTurn(chunks, i)
    groups.push(chunks.slice(i, end))
    i = end
  }
  return groups
}

function endOfTurn(chunks: readonly Chunk[], start: number): number {
  const first = chunks[start] as Chunk
  let end = start + 1
  if (first.kind !== 'assistant') return end
  const calls = new Set(first.content.flatMap(part => (part.type === 'tool-call' ? [part.id] : [])))
  for (let i = end; i < chunks.length && calls.size > 0; i++) {
    const chunk = chunks[i] as Chunk
    if (chunk.kind === 'assistant') break
    if (chunk.kind === 'tool-result' && calls.delete(chunk.callId)) end = i + 1
  }
  return end
}

function keepOpenTurn(groups: Chunk[][], session: Session): void {
  const open = session.pending.find(pending => pending.kind === 'tool-call')?.chunk
  const at = groups.findIndex(group => group.some(chunk => chunk.index === open?.index))
  if (at >= 0) groups.splice(at)
}
