import type { Chunk, ToolOutcome } from './chunk.ts'
import type { AnswerPart, Part, ToolCallPart } from './part.ts'
import { standing } from './summary.ts'

/** What a model is shown, free of any provider's dialect. */
export type Message =
  | { readonly role: 'system'; readonly content: readonly Part[] }
  | { readonly role: 'user'; readonly content: readonly Part[] }
  | { readonly role: 'assistant'; readonly content: readonly AnswerPart[] }
  | { readonly role: 'tool'; readonly callId: string; readonly tool: string; readonly outcome: ToolOutcome }

/**
 * The model-visible view of a history, valid for every provider whatever the history went through: system messages
 * first, every tool call answered exactly once and directly after it, in the order asked, and no call id twice.
 */
export function viewMessages(chunks: Iterable<Chunk>): Message[] {
  return viewOf(chunks).messages()
}

/** The same as a view that can grow: chunks that come later, other than summaries, are added to it. */
export function viewOf(chunks: Iterable<Chunk>): MessageView {
  const view = new MessageView()
  for (const chunk of standing(chunks)) view.add(chunk)
  return view
}

const unanswered: ToolOutcome = Object.freeze({
  kind: 'error',
  error: 'unanswered',
  message: 'No result of this call was recorded.',
})

/** The view of a history that grows: what was added once is not looked at again. What a summary replaced is for `standing` to leave out. */
export class MessageView {
  readonly #system: Message[] = []
  readonly #messages: Message[] = []
  /** Call ids in use, each with the number that a repetition of it gets next. */
  readonly #callIds = new Map<string, number>()
  #turn: Turn | undefined

  add(chunk: Chunk): void {
    switch (chunk.kind) {
      case 'system':
        this.#system.push({ role: 'system', content: spoken(chunk.content) })
        return
      case 'user':
        this.say(chunk.content)
        return
      case 'assistant':
        this.#close()
        this.#answer(chunk.content)
        return
      case 'tool-result':
        this.#result(chunk)
        return
      case 'memory':
        if (chunk.injected) this.say([{ type: 'text', text: chunk.injected }])
        return
      case 'compress':
        this.say([{ type: 'text', text: `Summary of the conversation so far:\n${chunk.summary}` }])
        return
    }
  }

  /** A user-side message; while tools are running it waits for their results. */
  say(content: readonly Part[]): void {
    const message: Message = { role: 'user', content: spoken(content) }
    if (this.#turn) this.#turn.waiting.push(message)
    else this.#messages.push(message)
  }

  /** What a model would be shown now; a turn that is still open counts as it stands. */
  messages(): Message[] {
    const shown = this.#system.concat(this.#messages)
    if (this.#turn) shown.push(...ended(this.#turn))
    return shown
  }

  #answer(content: readonly AnswerPart[]): void {
    const said = spoken(content)
    if (said.every(part => part.type === 'reasoning' && part.text === '')) return
    const calls: Call[] = []
    const parts = said.map(part => {
      if (part.type !== 'tool-call') return part
      const callId = this.#uniqueCallId(part.id)
      calls.push({ recordedId: part.id, callId, tool: part.name, outcome: undefined })
      return callId === part.id ? part : { ...part, id: callId }
    })
    this.#messages.push({ role: 'assistant', content: parts })
    if (calls.length > 0) this.#turn = { calls, waiting: [] }
  }

  #result(chunk: Chunk<'tool-result'>): void {
    const call = this.#turn?.calls.find(
      open => open.recordedId === chunk.callId && open.outcome === undefined,
    )
    if (call) {
      call.outcome = chunk.outcome
      return
    }
    // The call was answered already (two branches ran it) or lies elsewhere: show it asked again.
    this.#close()
    const again: ToolCallPart = {
      type: 'tool-call',
      id: chunk.callId,
      name: chunk.tool,
      args: chunk.args ?? {},
    }
    this.#answer([again])
    this.#result(chunk)
  }

  #close(): void {
    const turn = this.#turn
    if (!turn) return
    this.#turn = undefined
    this.#messages.push(...ended(turn))
  }

  #uniqueCallId(id: string): string {
    let unique = id
    let next = this.#callIds.get(id) ?? 1
    while (this.#callIds.has(unique)) unique = `${id}~${++next}`
    this.#callIds.set(id, next)
    if (unique !== id) this.#callIds.set(unique, 1)
    return unique
  }
}

/** A turn's results in the order asked, then what was said meanwhile. */
function ended({ calls, waiting }: Turn): Message[] {
  const results = calls.map(
    ({ callId, tool, outcome = unanswered }): Message => ({ role: 'tool', callId, tool, outcome }),
  )
  return results.concat(waiting)
}

/** Without empty texts, which some providers refuse. */
function spoken<T extends AnswerPart>(content: readonly T[]): readonly T[] {
  const isSilent = (part: T) => part.type === 'text' && part.text === ''
  return content.some(isSilent) ? content.filter(part => !isSilent(part)) : content
}

interface Turn {
  readonly calls: Call[]
  readonly waiting: Message[]
}

interface Call {
  readonly recordedId: string
  readonly callId: string
  readonly tool: string
  outcome: ToolOutcome | undefined
}
