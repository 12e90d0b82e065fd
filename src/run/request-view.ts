import type { Chunk } from '../session/chunk.ts'
import { type Message, MessageView, type ToolMessage } from '../session/message.ts'
import type { Session } from '../session/session.ts'
import { standing } from '../session/summary.ts'
import { forModel } from '../tool/big-output.ts'

/**
 * The messages of a session that grows round by round, behind an agent's instructions. A round looks only at what is new, and messages
 * shown before stay the same objects, so that a model driver can keep what it made of them.
 */
export class RequestView {
  readonly #instructions: readonly Message[]
  #view: MessageView
  #seen: Chunk | undefined

  constructor(instructions: readonly Message[] = []) {
    this.#instructions = instructions
    this.#view = this.#begin()
  }

  messages(session: Session): Message[] {
    const { chunks } = session
    // Chunks that were kept differently from how they were given are other chunks: begin again.
    if (this.#seen && chunks.at(this.#seen.index) !== this.#seen) {
      this.#view = this.#begin()
      this.#seen = undefined
    }
    const fresh = chunks.slice(this.#seen ? this.#seen.index + 1 : 0)
    // A summary changes what was shown before it: begin again, once.
    if (fresh.some(chunk => chunk.kind === 'compress')) {
      this.#view = this.#begin()
      for (const chunk of standing(chunks)) this.#view.add(chunk)
    } else for (const chunk of fresh) this.#view.add(chunk)
    this.#seen = chunks.at(-1)
    return this.#view.messages()
  }

  #begin(): MessageView {
    return new MessageView({ before: this.#instructions, show: shortened })
  }
}

/** A result too long for a request is cut in the middle. */
function shortened(message: ToolMessage): ToolMessage {
  const outcome = forModel(message.outcome, undefined, message.callId)
  return outcome === message.outcome ? message : { ...message, outcome }
}
