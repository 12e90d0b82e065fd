import { asJson, type Json } from '../../base/json.ts'
import type { Message } from '../../session/message.ts'
import type { AnswerPart, Part, ToolCallPart } from '../../session/part.ts'
import type { Session } from '../../session/session.ts'
import { addressOf } from './openai.ts'

/** A message of the AI SDK's user interface, as `useChat` takes and keeps it. */
export interface UIMessage {
  readonly id: string
  readonly role: 'system' | 'user' | 'assistant'
  readonly parts: UIPart[]
}

export type UIPart =
  | { readonly type: 'text'; readonly text: string; readonly state: 'done' }
  | { readonly type: 'reasoning'; readonly text: string; readonly state: 'done' }
  | { readonly type: 'file'; readonly mediaType: string; readonly url: string; readonly filename?: string }
  | { readonly type: 'step-start' }
  | UIToolPart

/** A tool call with what came of it. All are dynamic: which tools there were is not known here. */
export type UIToolPart = {
  readonly type: 'dynamic-tool'
  readonly toolName: string
  readonly toolCallId: string
  readonly input: Json
} & (
  | { readonly state: 'input-available' }
  | { readonly state: 'output-available'; readonly output: Json }
  | { readonly state: 'output-error'; readonly errorText: string }
  | {
      readonly state: 'output-denied'
      readonly approval: { readonly id: string; readonly approved: false; readonly reason: string }
    }
)

type Result = Extract<Message, { role: 'tool' }>

/**
 * The model-visible view of a session as AI SDK UI messages: an assistant message is everything between two messages of the user, one step for
 * each answer. A call that nobody has answered stands open.
 */
export function toUIMessages(session: Session): UIMessage[] {
  const messages = session.messages()
  const results = new Map(
    messages.flatMap(message => (message.role === 'tool' ? [[message.callId, message]] : [])),
  )
  const shown: UIMessage[] = []
  const begin = (role: UIMessage['role']): UIMessage => {
    const message = { id: `${session.id}-${shown.length}`, role, parts: [] }
    shown.push(message)
    return message
  }
  for (const message of messages) {
    if (message.role === 'tool') continue
    if (message.role !== 'assistant') {
      begin(message.role).parts.push(...message.content.map(said))
      continue
    }
    const last = shown.at(-1)
    const turn = last?.role === 'assistant' ? last : begin('assistant')
    turn.parts.push({ type: 'step-start' }, ...message.content.map(part => answered(part, results)))
  }
  return shown
}

function said(part: Part): UIPart {
  if (part.type === 'text') return { type: 'text', text: part.text, state: 'done' }
  const name = part.type === 'file' ? part.name : undefined
  return {
    type: 'file',
    mediaType: part.mediaType,
    url: addressOf(part),
    ...(name !== undefined && { filename: name }),
  }
}

function answered(part: AnswerPart, results: ReadonlyMap<string, Result>): UIPart {
  if (part.type === 'reasoning') return { type: 'reasoning', text: part.text, state: 'done' }
  return part.type === 'tool-call' ? toolPart(part, results.get(part.id)) : said(part)
}

function toolPart({ id, name, args }: ToolCallPart, result: Result | undefined): UIToolPart {
  const call = { type: 'dynamic-tool', toolName: name, toolCallId: id, input: args } as const
  const outcome = result?.outcome
  if (outcome === undefined || (outcome.kind === 'error' && outcome.error === 'unanswered'))
    return { ...call, state: 'input-available' }
  switch (outcome.kind) {
    case 'value':
      return {
        ...call,
        state: 'output-available',
        output: outcome.content ? outputOf(outcome.content) : outcome.value,
      }
    case 'error':
      return { ...call, state: 'output-error', errorText: `${outcome.error}: ${outcome.message}` }
    case 'denied':
      return { ...call, state: 'output-denied', approval: { id, approved: false, reason: outcome.reason } }
  }
}

/** The parts of an outcome, as they are; one text alone as its text. */
function outputOf(content: readonly Part[]): Json {
  const [only, ...others] = content
  return only?.type === 'text' && others.length === 0 ? only.text : asJson(content)
}
