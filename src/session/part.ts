import type { Json, JsonObject } from '../base/json.ts'

/** Provider-specific data that must survive a round trip. Recorded in `id`, never part of `state`. */
export interface Extras {
  readonly extras?: JsonObject
}

export interface TextPart extends Extras {
  readonly type: 'text'
  readonly text: string
}

/** Bytes travel as base64 in `data`, or stay where they are behind `url`: exactly one of the two. */
interface Media extends Extras {
  /** IANA media type, `image/png`. */
  readonly mediaType: string
  readonly data?: string
  readonly url?: string
}

export interface ImagePart extends Media {
  readonly type: 'image'
}

export interface FilePart extends Media {
  readonly type: 'file'
  readonly name?: string
}

/** What a person, a system prompt or a tool can say. */
export type Part = TextPart | ImagePart | FilePart

export interface ReasoningPart extends Extras {
  readonly type: 'reasoning'
  readonly text: string
}

export interface ToolCallPart extends Extras {
  readonly type: 'tool-call'
  /** The provider's id for the call. A result names it; `state` ignores it. */
  readonly id: string
  readonly name: string
  /** Parsed arguments, or the raw text when the model wrote something that is not JSON. */
  readonly args: Json
}

/** What a model can say, in the order it said it. */
export type AnswerPart = Part | ReasoningPart | ToolCallPart

type Bytes = { readonly data: string | Uint8Array }

/** A part as a caller may write it: bytes may be a `Uint8Array`. */
export type PartInput = TextPart | ImagePart | FilePart | (Omit<ImagePart | FilePart, 'data'> & Bytes)
export type AnswerPartInput = PartInput | ReasoningPart | ToolCallPart

/** The calls of a content list, in the order asked. A loop: V8's array functions are slow on frozen lists, which these are. */
export function callsIn(content: readonly AnswerPart[]): ToolCallPart[] {
  const calls: ToolCallPart[] = []
  for (const part of content) if (part.type === 'tool-call') calls.push(part)
  return calls
}

/** The text of a content list, its text parts joined; empty when there is none. */
export function textOf(content: readonly AnswerPart[]): string {
  let text = ''
  for (const part of content) if (part.type === 'text') text += part.text
  return text
}

/** Stands on the record for the name of a call that came without one. No tool can be called so. */
export const unnamed = '(unnamed)'
