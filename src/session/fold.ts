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
  /** Questions that no later chunk has answered, and whose call has no result and is still wanted. */
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
      return withTree(withoutQuestions(before, chunk.callId), chunk.tree)
    case 'merge':
      return withTree(before, chunk.tree)
    case 'assistant':
      if (callsIn(chunk.content).length > 0) return { ...endTurn(before), turn: chunk }
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

function withTree(before: Fold, tree: Digest | undefined): Fold {
  return tree === undefined ? before : { ...before, tree }
}

/** Nobody waits for the calls of a turn that is over, nor for an answer to what was asked about them. */
function endTurn(before: Fold): Fold {
  const rest = withoutQuestions(before)
  return rest.turn === undefined ? rest : { ...rest, turn: undefined }
}

/** Without the questions about a call, or about any. */
function withoutQuestions(before: Fold, callId?: string): Fold {
  if (before.approvals.length === 0) return before
  const approvals = before.approvals.filter(
    open => open.callId === undefined || (callId !== undefined && open.callId !== callId),
  )
  return approvals.length === before.approvals.length ? before : { ...before, approvals }
}
