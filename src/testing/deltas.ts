import type { ModelDelta } from '../model/spec.ts'
import type { AnswerPart } from '../session/part.ts'

/** Tells a finished answer as if it streamed: each part in one piece, or the text in the given pieces. */
export function tell(
  content: readonly AnswerPart[],
  onDelta: (delta: ModelDelta) => void,
  pieces?: readonly string[],
): void {
  for (const part of content) {
    if (part.type === 'reasoning') onDelta({ type: 'reasoning-delta', text: part.text })
    else if (part.type === 'text') {
      for (const text of pieces ?? [part.text]) onDelta({ type: 'text-delta', text })
    } else if (part.type === 'tool-call') {
      const text = typeof part.args === 'string' ? part.args : JSON.stringify(part.args)
      onDelta({ type: 'tool-input-delta', callId: part.id, tool: part.name, text })
    }
  }
}
