import { sha256 } from '../base/digest.ts'
import type { Chunk, ToolOutcome } from './chunk.ts'
import { type AnswerPart, callsIn, type Part, type ToolCallPart } from './part.ts'

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

const unanswered: ToolOutcome = Object.freeze({
  kind: 'error',
  error: 'unanswered',
  message: 'No result of this call was recorded.',
})

/** How results are shown. It gives the same for the same result. */
export type ShowResult = (result: ToolMessage) => ToolMessage

/** A view as it was after one of the chunks: `MessageView.from` continues there. Views of one history, and of its forks, share their messages. */
export interface KeptView {
  readonly log: MessageLog
  readonly length: number
  readonly system: readonly Message[]
  readonly turn: Turn | undefined
}

/** The view of a history that grows: what was added once is not looked at again. What a summary replaced is for `standing` to leave out. */
export class MessageView {
  readonly #show: ShowResult | undefined
  #log = new MessageLog()
  #length = 0
  #system: readonly Message[] = []
  #turn: Turn | undefined

  constructor(show?: ShowResult) {
    this.#show = show
  }

  /** `show` is the one that the kept view was made with. */
  static from({ log, length, system, turn }: KeptView, show?: ShowResult): MessageView {
    const view = new MessageView(show)
    view.#log = log
    view.#length = length
    view.#system = system
    view.#turn = turn && {
      calls: turn.calls.map(call => ({ ...call })),
      waiting: turn.waiting.slice(),
    }
    return view
  }

  /** Whether no call waits for its result. */
  get isSettled(): boolean {
    return this.#turn === undefined
  }

  /** The view as it is now. Nothing is added to this one afterwards, unless it is settled. */
  keep(): KeptView {
    return { log: this.#log, length: this.#length, system: this.#system, turn: this.#turn }
  }

  add(chunk: Chunk): void {
    switch (chunk.kind) {
      case 'system':
        this.#instruct(spoken(chunk.content))
        return
      case 'user':
        this.#say(chunk.content)
        return
      case 'assistant':
        this.#close()
        this.#answer(chunk.content)
        return
      case 'tool-result':
        this.#result(chunk)
        return
      case 'memory':
        if (chunk.injected) this.#say([{ type: 'text', text: chunk.injected }])
        return
      case 'compress':
        this.#say([{ type: 'text', text: `Summary of the conversation so far:\n${chunk.summary}` }])
        return
    }
  }

  /** What a model would be shown now, behind `before`; a turn that is still open counts as it stands. */
  messages(before: readonly Message[] = []): Message[] {
    const first = this.#system.length > 0 ? before.concat(this.#system) : before
    return this.#log.messages(this.#length, first, this.#turn ? this.#ended(this.#turn) : [])
  }

  #instruct(content: readonly Part[]): void {
    if (content.length > 0) this.#system = [...this.#system, Object.freeze({ role: 'system', content })]
  }

  /** A user-side message; while tools are running it waits for their results. */
  #say(said: readonly Part[]): void {
    const content = spoken(said)
    if (content.length === 0) return
    const message: Message = Object.freeze({ role: 'user', content })
    if (this.#turn) this.#turn.waiting.push(message)
    else this.#push(message)
  }

  #answer(content: readonly AnswerPart[]): void {
    const said = spoken(content)
    if (said.every(part => part.type === 'reasoning' && part.text === '')) return
    const asked = callsIn(said)
    const log = this.#grow()
    const calls = asked.map(({ id, name }): Call => {
      return { recordedId: id, callId: log.uniqueCallId(id), tool: toolName(name), result: undefined }
    })
    this.#push(Object.freeze({ role: 'assistant', content: renamed(said, calls) }))
    if (calls.length > 0) this.#turn = { calls, waiting: [] }
  }

  #result(chunk: Chunk<'tool-result'>): void {
    const call = this.#turn?.calls.find(open => open.recordedId === chunk.callId && !open.result)
    if (call) {
      call.result = this.#resultOf(call, chunk.outcome)
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

  #resultOf({ callId, tool }: Call, outcome: ToolOutcome): ToolMessage {
    const result: ToolMessage = { role: 'tool', callId, tool, outcome }
    return Object.freeze(this.#show ? this.#show(result) : result)
  }

  #close(): void {
    const turn = this.#turn
    if (!turn) return
    this.#turn = undefined
    for (const message of this.#ended(turn)) this.#push(message)
  }

  /** A turn's results in the order asked, then what was said meanwhile. */
  #ended({ calls, waiting }: Turn): Message[] {
    const results: Message[] = calls.map(call => call.result ?? this.#resultOf(call, unanswered))
    return waiting.length > 0 ? results.concat(waiting) : results
  }

  #push(message: Message): void {
    this.#grow().add(message)
    this.#length++
  }

  /** The log, to be added to: one of its own where another view has gone on from here. */
  #grow(): MessageLog {
    if (this.#log.end !== this.#length) this.#log = this.#log.branchAt(this.#length)
    return this.#log
  }
}

/** How many logs a message may lie behind before they are copied into one. */
const deepestLog = 64

/**
 * Messages, and the call ids in them. Views that have a beginning in common share it: the first to continue adds to the log, any other
 * branches off.
 */
class MessageLog {
  readonly #base: MessageLog | undefined
  /** How many messages come before those of this log. */
  readonly #start: number
  readonly #depth: number
  #messages: Message[] = []
  /** For each call id in use, by the message that it was used in: the number that a repetition of it gets next. */
  #callIds: Map<string, { readonly message: number; readonly next: number }[]> | undefined

  constructor(base?: MessageLog, start = 0) {
    this.#base = base
    this.#start = start
    this.#depth = base ? base.#depth + 1 : 0
  }

  get end(): number {
    return this.#start + this.#messages.length
  }

  add(message: Message): void {
    this.#messages.push(message)
  }

  messages(length: number, before: readonly Message[], after: readonly Message[]): Message[] {
    if (!this.#base && length === this.end) return before.concat(this.#messages, after)
    const pieces = this.#logs(length).map(({ log, until }) =>
      until === log.end ? log.#messages : log.#messages.slice(0, until - log.#start),
    )
    return before.concat(...pieces, after)
  }

  branchAt(length: number): MessageLog {
    // Behind a long end that is not this branch's own, the log would keep more than is shown.
    if (this.#depth < deepestLog && this.end - length <= length) return new MessageLog(this, length)
    const copy = new MessageLog()
    copy.#messages = this.messages(length, [], [])
    for (const { log, until } of this.#logs(length)) {
      for (const [id, uses] of log.#callIds ?? []) {
        for (const use of uses) if (use.message < until) copy.#uses(id).push(use)
      }
    }
    return copy
  }

  /** An id for a call in the message that comes next. */
  uniqueCallId(id: string): string {
    let unique = id
    let next = this.#nextOf(id) ?? 1
    while (this.#nextOf(unique) !== undefined) unique = `${id}~${++next}`
    const message = this.end
    this.#uses(id).push({ message, next })
    if (unique !== id) this.#uses(unique).push({ message, next: 1 })
    return unique
  }

  #uses(id: string): { readonly message: number; readonly next: number }[] {
    this.#callIds ??= new Map()
    let uses = this.#callIds.get(id)
    if (!uses) {
      uses = []
      this.#callIds.set(id, uses)
    }
    return uses
  }

  /** Undefined when the id is not in use. */
  #nextOf(id: string): number | undefined {
    let until = Number.POSITIVE_INFINITY
    for (let log: MessageLog | undefined = this; log; log = log.#base) {
      const limit = until
      const use = log.#callIds?.get(id)?.findLast(({ message }) => message < limit)
      if (use) return use.next
      until = Math.min(until, log.#start)
    }
    return undefined
  }

  /** The logs that the first `length` messages lie in, oldest first, each with where the next begins. */
  #logs(length: number): { readonly log: MessageLog; readonly until: number }[] {
    const logs: { log: MessageLog; until: number }[] = []
    let until = length
    for (let log: MessageLog | undefined = this; log; log = log.#base) {
      if (until > log.#start) logs.push({ log, until })
      until = Math.min(until, log.#start)
    }
    return logs.reverse()
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
  result: ToolMessage | undefined
}
