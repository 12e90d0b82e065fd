import { chunksFrom, keepView, previousOf, viewKeptAt } from '../session/chain.ts'
import type { Chunk } from '../session/chunk.ts'
import { type KeptView, type Message, MessageView, type ToolMessage } from '../session/message.ts'
import { type Session, valueFrom } from '../session/session.ts'
import { standing } from '../session/summary.ts'
import { forModel } from '../tool/big-output.ts'

/**
 * The messages of a request: `instructions`, then what a model is shown of a session. The view is kept with the session's last chunk, so
 * that a request looks only at the chunks since the last one before it on this history, whichever call or fork made that. Messages shown
 * before stay the same objects, so that a model driver can keep what it made of them.
 */
export function requestMessages(session: Session, instructions: readonly Message[] = []): Message[] {
  const { tip } = valueFrom(session)
  if (!tip) return instructions.slice()
  const view = viewAt(tip)
  const messages = view.messages(instructions)
  keepView(tip, view.keep())
  return messages
}

function viewAt(tip: Chunk): MessageView {
  const fresh: Chunk[] = []
  let kept: KeptView | undefined
  for (let here: Chunk | undefined = tip; here && !kept; here = previousOf(here)) {
    kept = viewKeptAt(here)
    if (!kept) fresh.push(here)
  }
  // A summary changes what was shown before it: begin again, once.
  if (fresh.some(chunk => chunk.kind === 'compress')) {
    const view = new MessageView(shortened)
    for (const chunk of standing(chunksFrom(tip, 0))) view.add(chunk)
    return view
  }
  const view = kept ? MessageView.from(kept, shortened) : new MessageView(shortened)
  // Most forks are made of what a call returned, which ends with an answer: they share the view up to there.
  const answer = fresh.find(chunk => chunk.kind === 'assistant')
  for (const chunk of fresh.reverse()) {
    view.add(chunk)
    if (chunk === answer && view.isSettled) keepView(chunk, view.keep())
  }
  return view
}

/** A result too long for a request is cut in the middle. */
function shortened(message: ToolMessage): ToolMessage {
  const outcome = forModel(message.outcome, undefined, message.callId)
  return outcome === message.outcome ? message : { ...message, outcome }
}
