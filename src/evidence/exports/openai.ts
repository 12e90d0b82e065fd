import type { Json } from '../../base/json.ts'
import { outcomeText } from '../../session/chunk-text.ts'
import type { Message } from '../../session/message.ts'
import type { AnswerPart, FilePart, ImagePart, Part } from '../../session/part.ts'
import type { Session } from '../../session/session.ts'

/** A message of OpenAI's chat completions, as requests and fine-tuning files have it. */
export type OpenAIMessage =
  | { readonly role: 'system'; readonly content: string }
  | { readonly role: 'user'; readonly content: string | readonly OpenAIPart[] }
  | {
      readonly role: 'assistant'
      readonly content: string | null
      readonly tool_calls?: readonly OpenAIToolCall[]
    }
  | { readonly role: 'tool'; readonly tool_call_id: string; readonly content: string }

export type OpenAIPart =
  | { readonly type: 'text'; readonly text: string }
  | { readonly type: 'image_url'; readonly image_url: { readonly url: string } }
  | { readonly type: 'file'; readonly file: { readonly filename: string; readonly file_data: string } }

export interface OpenAIToolCall {
  readonly id: string
  readonly type: 'function'
  readonly function: { readonly name: string; readonly arguments: string }
}

/**
 * The model-visible view of a session as OpenAI messages. Reasoning has no place in them and is left out; images and files that an answer or a
 * tool gave are named in brackets.
 */
export function toOpenAIMessages(session: Session): OpenAIMessage[] {
  return openAIMessages(session.messages())
}

export function openAIMessages(messages: readonly Message[]): OpenAIMessage[] {
  return messages.map(openAIMessage)
}

function openAIMessage(message: Message): OpenAIMessage {
  switch (message.role) {
    case 'system':
      return { role: 'system', content: spoken(message.content) }
    case 'user':
      return { role: 'user', content: userContent(message.content) }
    case 'assistant':
      return answer(message.content)
    case 'tool':
      return { role: 'tool', tool_call_id: message.callId, content: toolText(message.outcome) }
  }
}

function userContent(content: readonly Part[]): string | OpenAIPart[] {
  if (content.every(part => part.type === 'text')) return spoken(content)
  return content.map(part => {
    if (part.type === 'text') return { type: 'text', text: part.text }
    if (part.type === 'image') return { type: 'image_url', image_url: { url: addressOf(part) } }
    if (part.data === undefined) return { type: 'text', text: named(part) }
    return { type: 'file', file: { filename: part.name ?? 'file', file_data: addressOf(part) } }
  })
}

function answer(content: readonly AnswerPart[]): OpenAIMessage {
  const text = spoken(content)
  const calls = content.flatMap((part): OpenAIToolCall[] =>
    part.type === 'tool-call'
      ? [{ id: part.id, type: 'function', function: { name: part.name, arguments: written(part.args) } }]
      : [],
  )
  const said = { role: 'assistant', content: text === '' && calls.length > 0 ? null : text } as const
  return calls.length > 0 ? { ...said, tool_calls: calls } : said
}

/** The text of an outcome as a model reads it, with what is no text named. */
function toolText(outcome: Extract<Message, { role: 'tool' }>['outcome']): string {
  return outcome.kind === 'value' && outcome.content ? spoken(outcome.content) : outcomeText(outcome)
}

function spoken(content: readonly AnswerPart[]): string {
  return content
    .flatMap(part => {
      if (part.type === 'text') return [part.text]
      return part.type === 'image' || part.type === 'file' ? [named(part)] : []
    })
    .join('')
}

/** What stands for bytes where only text can. */
export function named(part: ImagePart | FilePart): string {
  const name = part.type === 'file' ? part.name : undefined
  return `[${[part.type, part.mediaType, name ?? part.url].filter(Boolean).join(' ')}]`
}

/** A URL that holds the bytes, or where they are. */
export function addressOf({ url, mediaType, data = '' }: ImagePart | FilePart): string {
  return url ?? `data:${mediaType};base64,${data}`
}

/** Arguments that were no JSON are passed on as the text they were. */
function written(args: Json): string {
  return typeof args === 'string' ? args : JSON.stringify(args)
}
