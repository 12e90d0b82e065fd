import type { Json, JsonObject } from '../../base/json.ts'
import type { ModelAnswer, ModelRequest } from '../../model/spec.ts'
import type { ToolOutcome } from '../../session/chunk.ts'
import type { Message } from '../../session/message.ts'
import type { AnswerPart } from '../../session/part.ts'

/** What was said to a model, in the words of the conventions: a value for each attribute. */
export function requestContent({ messages, tools }: ModelRequest): Readonly<Record<string, Json>> {
  const system = messages.flatMap(message => (message.role === 'system' ? message.content.map(partOf) : []))
  const rest = messages.filter(message => message.role !== 'system')
  return {
    ...(system.length > 0 && { 'gen_ai.system_instructions': system }),
    'gen_ai.input.messages': rest.map(messageOf),
    ...(tools.length > 0 && {
      'gen_ai.tool.definitions': tools.map(({ name, description, parameters }) => ({
        type: 'function',
        name,
        description,
        parameters,
      })),
    }),
  }
}

export function answerContent({ content, finishReason }: ModelAnswer): Readonly<Record<string, Json>> {
  return {
    'gen_ai.output.messages': [
      { role: 'assistant', parts: content.map(partOf), finish_reason: finishReason },
    ],
  }
}

/** What a tool gave, or why it gave nothing. */
export function resultOf(outcome: ToolOutcome): Json {
  if (outcome.kind === 'value') return outcome.value
  return outcome.kind === 'error'
    ? { error: outcome.error, message: outcome.message }
    : { denied: outcome.reason }
}

function messageOf(message: Message): JsonObject {
  if (message.role !== 'tool') return { role: message.role, parts: message.content.map(partOf) }
  const { callId, outcome } = message
  return {
    role: 'tool',
    parts: [{ type: 'tool_call_response', id: callId, response: resultOf(outcome) }],
  }
}

/** Bytes stay behind: an image would fill what a backend takes of a span. */
function partOf(part: AnswerPart): JsonObject {
  switch (part.type) {
    case 'text':
    case 'reasoning':
      return { type: part.type, content: part.text }
    case 'tool-call':
      return { type: 'tool_call', id: part.id, name: part.name, arguments: part.args }
    case 'image':
    case 'file': {
      const about = { modality: part.type, mime_type: part.mediaType }
      return part.url === undefined ? { type: 'blob', ...about } : { type: 'uri', ...about, uri: part.url }
    }
  }
}
