import type { ModelRequest } from '../model/spec.ts'
import type { Chunk } from '../session/chunk.ts'
import type { Message } from '../session/message.ts'
import type { AnswerPart } from '../session/part.ts'

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

export function estimateMessage(message: Message): number {
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
