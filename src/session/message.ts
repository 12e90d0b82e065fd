import { sha256 } from '../base/digest.ts'
import type { Chunk, ToolOutcome } from './chunk.ts'
import { type AnswerPart, callsIn, type Part, type ToolCallPart } from './part.ts'
import { standing } from './summary.ts'

/** What a model is shown, free of any provider's dialect. */
export type Message =
  | { readonly role: 'system'; readonly content: readonly Part[] }
  | { readonly role: 'user'; readonly content: readonly Part[] }
  | { readonly role: 'assistant'; readonly content: readonly AnswerPart[] }
  | ToolMessage

export interface ToolMessage {
  readonly role: 'tool'
  readonly callId: string
  readonly tool: string
  readonly outcome: ToolOutcome
}

/**
 * The model-visible view of a history, valid for every provider whatever the history went through: system messages
 * first, every tool call answered exactly once and directly after it, in the order asked, no call id twice, and names of tools
 * that providers take. A name that a model made up is written otherwise here, and stays as it was on the record.
 */
export function viewMessages(chunks: Iterable<Chunk>): Message[] {
  const view = new MessageView()
  for (const chunk of standing(chunks)) view.add(chunk)
  return view.messages()
}

export interface ViewOptions {
  /** What is said before everything. */
  readonly before?: readonly Message[]
  /** How results are shown; as they are by default. */
  readonly show?: (result: ToolMessage) => ToolMessage
}

const unanswered: ToolOutcome = Object.freeze({
  kind: 'error',
  error: 'unanswered',
  message: 'No result of this call was recorded.',
})

/** The view of a history that grows: what was added once is not looked at again. What a summary replaced is for `standing` to leave out. */
export class MessageView {
  readonly #show: ((result: ToolMessage) => ToolMessage) | undefined
  readonly #messages: Message[]
  /** Where the next system message goes. */
  #systemEnd: number
  /** Call ids in use, each with the number that a repetition of it gets next. */
  readonly #callIds = new Map<string, number>()
  #turn: Turn | undefined

  constructor({ before = [], show }: ViewOptions = {}) {
    this.#show = show
    this.#messages = before.slice()
    this.#systemEnd = before.length
  }

  add(chunk: Chunk): void {
    switch (chunk.kind) {
      case 'system':
        this.#instruct(spoken(chunk.content))
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
    if (message.content.length === 0) return
    if (this.#turn) this.#turn.waiting.push(message)
    else this.#messages.push(message)
  }

  /** What a model would be shown now; a turn that is still open counts as it stands. */
  messages(): Message[] {
    const shown = this.#messages.slice()
    if (this.#turn) this.#end(this.#turn, shown)
    return shown
  }

  #instruct(content: readonly Part[]): void {
    if (content.length > 0) this.#messages.splice(this.#systemEnd++, 0, { role: 'system', content })
  }

  #answer(content: readonly AnswerPart[]): void {
    const said = spoken(content)
    if (said.every(part => part.type === 'reasoning' && part.text === '')) return
    const calls = callsIn(said).map(({ id, name }): Call => {
      return { recordedId: id, callId: this.#uniqueCallId(id), tool: toolName(name), outcome: undefined }
    })
    this.#messages.push({ role: 'assistant', content: renamed(said, calls) })
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
    this.#end(turn, this.#messages)
  }

  /** A turn's results in the order asked, then what was said meanwhile. */
  #end({ calls, waiting }: Turn, messages: Message[]): void {
    for (const { callId, tool, outcome = unanswered } of calls) {
      const result: ToolMessage = { role: 'tool', callId, tool, outcome }
      messages.push(this.#show ? this.#show(result) : result)
    }
    for (const message of waiting) messages.push(message)
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

/** The same parts, each call under the id and the name that it has here. */
function renamed(said: readonly AnswerPart[], calls: readonly Call[]): readonly AnswerPart[] {
  let next = 0
  let isSame = true
  const shown = said.map(part => {
    if (part.type !== 'tool-call') return part
    const { callId: id, tool: name } = calls[next++] as Call
    if (part.id === id && part.name === name) return part
    isSame = false
    return { ...part, id, name }
  })
  return isSame ? said : shown
}

/** What providers take as the name of a tool. */
const validName = /^[a-zA-Z0-9_-]{1,64}$/

/** A name that providers take. One that is rewritten ends in a digest of what it was: two bad names never become one, nor that of a tool. */
function toolName(name: string): string {
  if (validName.test(name)) return name
  const readable = name.replace(/[^a-zA-Z0-9_-]+/g, '_').slice(0, 55)
  return `${readable}_${sha256(name.toWellFormed()).slice(0, 8)}`
}

/** Without texts that say nothing, which some providers refuse: models write a line break before they call a tool. */
function spoken<T extends AnswerPart>(content: readonly T[]): readonly T[] {
  for (const part of content) if (isSilent(part)) return content.filter(other => !isSilent(other))
  return content
}

function isSilent(part: AnswerPart): boolean {
  return part.type === 'text' && part.text.trim() === ''
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
