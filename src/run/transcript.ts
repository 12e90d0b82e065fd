import { RathError } from '../base/errors.ts'
import type { ModelRequest } from '../model/spec.ts'
import type { Chunk } from '../session/chunk.ts'
import { type Message, MessageView } from '../session/message.ts'
import type { AnswerPart } from '../session/part.ts'
import { forModel, outcomeText } from '../tool/big-output.ts'

/** English text has about four characters to a token with every provider; other scripts have fewer, so leave room. */
export const charactersPerToken = 4
/** A picture or document, whatever its size: what providers count for a large picture. */
const mediaTokens = 1500

export function estimateText(text: string): number {
  return Math.ceil(text.length / charactersPerToken)
}

/** Tokens of a whole request: messages, and what the model is told about tools and output. */
export function estimateRequest({ messages, tools, output }: ModelRequest): number {
  let tokens = output ? estimateText(JSON.stringify(output.schema)) : 0
  for (const tool of tools) tokens += estimateText(JSON.stringify(tool))
  return messages.reduce((sum, message) => sum + estimateMessage(message), tokens)
}

function estimateMessage(message: Message): number {
  return message.role === 'tool' ? written(message.outcome) : estimateContent(message.content)
}

/** Tokens that a chunk adds to a request; nothing for evidence. */
export function estimateChunk(chunk: Chunk): number {
  switch (chunk.kind) {
    case 'system':
    case 'user':
    case 'assistant':
      return estimateContent(chunk.content)
    case 'tool-result':
      return written(chunk.outcome)
    case 'memory':
      return estimateText(chunk.injected ?? '')
    case 'compress':
      return estimateText(chunk.summary)
    default:
      return 0
  }
}

function estimateContent(content: readonly AnswerPart[]): number {
  return content.reduce((sum, part) => sum + estimatePart(part), 0)
}

function estimatePart(part: AnswerPart): number {
  if (part.type === 'text' || part.type === 'reasoning') return estimateText(part.text)
  return part.type === 'tool-call' ? estimateText(part.name) + written(part.args) : mediaTokens
}

function written(value: unknown): number {
  return estimateText(JSON.stringify(value))
}

/**
 * Chunks as text to read, one piece for each message. Calls and results are told and not sent as such: providers refuse those in a
 * request that describes no tools, and a model that is shown a conversation goes on with it.
 */
export function transcriptOf(chunks: readonly Chunk[]): string[] {
  const view = new MessageView()
  for (const chunk of chunks) view.add(chunk)
  return view.messages().map(told)
}

/** Messages for a request that describes no tools: what was called and came back is told, and reasoning is left out. */
export function withoutCalls(messages: readonly Message[]): Message[] {
  const shown: Message[] = []
  for (const message of messages) {
    const plain = message.role === 'tool' || message.role === 'assistant' ? plainOf(message) : message
    if (plain) shown.push(plain)
  }
  return shown
}

/** What was made of a message is the same object the next time, as the message is; null where nothing is left of it. */
const plainMessages = new WeakMap<Message, Message | null>()

function plainOf(message: Extract<Message, { role: 'tool' | 'assistant' }>): Message | null {
  let plain = plainMessages.get(message)
  if (plain === undefined) {
    plain = madePlain(message)
    plainMessages.set(message, plain)
  }
  return plain
}

function madePlain(message: Extract<Message, { role: 'tool' | 'assistant' }>): Message | null {
  if (message.role === 'tool') return { role: 'user', content: [{ type: 'text', text: told(message) }] }
  const content = message.content.flatMap((part): AnswerPart[] => {
    if (part.type === 'reasoning') return []
    return part.type === 'tool-call' ? [{ type: 'text', text: toldPart(part) }] : [part]
  })
  return content.length > 0 ? { role: 'assistant', content } : null
}

function told(message: Message): string {
  if (message.role === 'tool') {
    const { tool, outcome } = message
    return `[${outcome.kind === 'value' ? 'result' : outcome.kind} of ${tool}]\n${outcomeText(forModel(outcome))}`
  }
  const parts = message.content.map(toldPart).filter(part => part !== '')
  return `[${message.role}]\n${parts.join('\n')}`
}

function toldPart(part: AnswerPart): string {
  switch (part.type) {
    case 'text':
      return part.text
    case 'reasoning':
      return ''
    case 'tool-call':
      return `(calls ${part.name} with ${JSON.stringify(part.args)})`
    default:
      return `(${part.type}: ${part.mediaType})`
  }
}

/**
 * The next piece of a text of so many characters at most: whole messages while they fit, else the beginning of one. What it takes
 * is taken off `messages`.
 */
export function takePiece(messages: string[], room: number): string {
  // Fewer would take a summary for every word.
  if (room < 200) {
    throw new RathError(
      'invalid-argument',
      `The instruction and the summary so far leave no room for the conversation (${Math.max(0, Math.floor(room))} characters of maxInput); raise maxInput.`,
    )
  }
  const taken: string[] = []
  let left = room
  for (let next = messages[0]; next !== undefined; next = messages[0]) {
    if (next.length + 2 > left) break
    taken.push(next)
    left -= next.length + 2
    messages.shift()
  }
  if (taken.length > 0) return taken.join('\n\n')
  const whole = messages[0] as string
  // Not inside a character of two units.
  const end = /[\uD800-\uDBFF]/.test(whole[room - 1] ?? '') ? room - 1 : room
  messages[0] = whole.slice(end)
  return whole.slice(0, end)
}
