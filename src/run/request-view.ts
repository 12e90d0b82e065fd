import type { Chunk } from '../session/chunk.ts'
import { type Message, MessageView, viewOf } from '../session/message.ts'
import type { Session } from '../session/session.ts'
import { forModel } from '../tool/big-output.ts'

/**
 * The messages of a session that grows round by round. A round looks only at what is new, and messages shown before stay the same
 * objects, so that a model driver can keep what it made of them.
 */
export class RequestView {
  #view = new MessageView()
  #seen: Chunk | undefined
  readonly #short = new WeakMap<ToolMessage, ToolMessage>()

  messages(session: Session): Message[] {
    return this.#messages(session).map(message =>
      message.role === 'tool' ? this.#shortened(message) : message,
    )
  }

  #messages(session: Session): Message[] {
    const { chunks } = session
    const start = this.#seen ? this.#seen.index + 1 : 0
    // Chunks that were kept differently from how they were given are other chunks: begin again.
    if (this.#seen && chunks.at(start - 1) !== this.#seen) {
      this.#view = new MessageView()
      this.#seen = undefined
      return this.#messages(session)
    }
    const fresh = chunks.slice(start)
    // A summary changes what was shown before it: begin again, once.
    if (fresh.some(chunk => chunk.kind === 'compress')) this.#view = viewOf(chunks)
    else for (const chunk of fresh) this.#view.add(chunk)
    this.#seen = chunks.at(-1)
    return this.#view.messages()
  }

  /** A result too long for a request, cut in the middle; made once. */
  #shortened(message: ToolMessage): ToolMessage {
    let short = this.#short.get(message)
    if (short === undefined) {
      const outcome = forModel(message.outcome, undefined, message.callId)
      short = outcome === message.outcome ? message : { ...message, outcome }
      this.#short.set(message, short)
    }
    return short
  }
}

type ToolMessage = Extract<Message, { role: 'tool' }>
