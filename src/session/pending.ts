import { backwards, foldAt } from './chain.ts'
import type { Chunk } from './chunk.ts'
import type { ToolCallPart } from './part.ts'

/** Something a session waits for. */
export type Pending =
  | { readonly kind: 'tool-call'; readonly call: ToolCallPart; readonly chunk: Chunk<'assistant'> }
  | { readonly kind: 'approval'; readonly chunk: Chunk<'approval'> }

/** Tool calls of the running turn without a result, then questions without an answer. Looks back one turn at most. */
export function pendingAt(tip: Chunk | undefined): readonly Pending[] {
  const { turn, approvals } = foldAt(tip)
  const pending: Pending[] = []
  if (turn) {
    const answered = new Set<string>()
    for (const chunk of backwards(tip)) {
      if (chunk === turn) break
      if (chunk.kind === 'tool-result') answered.add(chunk.callId)
    }
    for (const part of turn.content) {
      if (part.type === 'tool-call' && !answered.has(part.id))
        pending.push(Object.freeze({ kind: 'tool-call', call: part, chunk: turn }))
    }
  }
  for (const chunk of approvals) pending.push(Object.freeze({ kind: 'approval', chunk }))
  return Object.freeze(pending)
}
