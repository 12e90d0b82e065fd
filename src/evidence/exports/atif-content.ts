import { isPlainObject, type Json, type JsonObject } from '../../base/json.ts'
import type { Chunk } from '../../session/chunk.ts'
import { outcomeText } from '../../session/chunk-text.ts'
import { type AnswerPart, type FilePart, type ImagePart, textOf } from '../../session/part.ts'
import type { AtifContent, AtifPart, AtifResult } from './atif-format.ts'
import { addressOf, named } from './openai.ts'

const images = new Set(['image/jpeg', 'image/png', 'image/gif', 'image/webp'])
const sounds = new Set(
  ['wav', 'mpeg', 'mp4', 'aac', 'ogg', 'flac', 'webm', 'aiff'].map(name => `audio/${name}`),
)

/** Text as it is; parts where something else is among it. What the format has no type for is named in brackets. */
export function atifContent(content: readonly AnswerPart[]): AtifContent {
  const shown = content.filter(part => part.type !== 'reasoning' && part.type !== 'tool-call')
  if (shown.every(part => part.type === 'text')) return textOf(shown)
  return shown.map(part => (part.type === 'text' ? { type: 'text', text: part.text } : media(part)))
}

function media(part: ImagePart | FilePart): AtifPart {
  const { mediaType } = part
  const type = images.has(mediaType) ? 'image' : sounds.has(mediaType) ? 'audio' : undefined
  if (type === undefined) return { type: 'text', text: named(part) }
  return { type, source: { media_type: mediaType, path: addressOf(part) } }
}

/** The format has objects for arguments; anything else a model wrote stands in one under `input`. */
export function atifArguments(args: Json): JsonObject {
  return isPlainObject(args) ? (args as JsonObject) : { input: args }
}

export function atifResult(
  chunk: Chunk<'tool-result'>,
  callId: string | undefined,
  inside: readonly string[],
): AtifResult {
  const { outcome, tool, id, durationMs } = chunk
  return {
    ...(callId !== undefined && { source_call_id: callId }),
    content:
      outcome.kind === 'value' && outcome.content ? atifContent(outcome.content) : outcomeText(outcome),
    ...(inside.length > 0 && {
      subagent_trajectory_ref: inside.map(id => ({ session_id: id, trajectory_id: id })),
    }),
    extra: {
      chunk: id,
      tool,
      outcome: outcome.kind,
      ...(durationMs !== undefined && { duration_ms: durationMs }),
    },
  }
}
