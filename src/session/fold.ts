import type { Digest } from '../base/digest.ts'
import type { Chunk } from './chunk.ts'
import { callsIn } from './part.ts'
import { addUsage, noUsage, type Usage } from './usage.ts'

/**
 * What a chain knows at one of its chunks without walking back. A chunk that changes nothing here shares its
 * predecessor's fold, so a fold costs memory only where something happened.
 */
export interface Fold {
  readonly usage: Usage
  readonly placement: Chunk<'placement'> | undefined
  /** The files as the last chunk that tells of them left them. */
  readonly tree: Digest | undefined
  /** The last answer that asked for tools, while its results may still come. */
  readonly turn: Chunk<'assistant'> | undefined
  /** Questions that no later chunk has answered. */
  readonly approvals: readonly Chunk<'approval'>[]
}

export const emptyFold: Fold = {
  usage: noUsage,
  placement: undefined,
  tree: undefined,
  turn: undefined,
  approvals: [],
}

export function fold(before: Fold, chunk: Chunk): Fold {
  const after = foldKind(before, chunk)
  if (!('usage' in chunk) || chunk.usage === undefined) return after
  return { ...after, usage: addUsage(before.usage, chunk.usage) }
}

function foldKind(before: Fold, chunk: Chunk): Fold {
  switch (chunk.kind) {
    case 'placement':
      return { ...before, placement: chunk, tree: chunk.workspace?.tree }
    case 'tool-result':
    case 'merge':
      return chunk.tree === undefined ? before : { ...before, tree: chunk.tree }
    case 'assistant':
      if (callsIn(chunk.content).length > 0) return { ...before, turn: chunk }
      return endTurn(before)
    case 'user':
      return endTurn(before)
    case 'approval': {
      const others = before.approvals.filter(open => open.approval !== chunk.approval)
      return { ...before, approvals: chunk.verdict === undefined ? [...others, chunk] : others }
    }
    default:
      return before
  }
}

function endTurn(before: Fold): Fold {
  return before.turn === undefined ? before : { ...before, turn: undefined }
}
