import { RathError } from '../base/errors.ts'
import type { Json, JsonObject } from '../base/json.ts'
import type { ToolOutcome } from '../session/chunk.ts'
import { type Part, textOf } from '../session/part.ts'
import type { Session } from '../session/session.ts'
import type { Tool } from './spec.ts'
import { tool } from './tool.ts'
import { ToolError } from './tool-error.ts'

/** Characters of one outcome that a model is shown by default. */
const defaultOutputLimit = 48_000
/** Characters that one reading of the rest gives: few enough to be shown whole. */
const window = 24_000

interface Cut {
  readonly limit: number
  readonly callId: string | undefined
  readonly outcome: ToolOutcome
}

// Requests are built again for every round, and a large value costs as much to write out each time. Outcomes never change.
const cuts = new WeakMap<ToolOutcome, Cut>()

/**
 * An outcome as the model is shown it: the same when it is small, else its beginning and its end with a line between them that says
 * how to read the rest. The record keeps the whole.
 */
export function forModel(outcome: ToolOutcome, limit = defaultOutputLimit, callId?: string): ToolOutcome {
  const known = cuts.get(outcome)
  if (known && known.limit === limit && known.callId === callId) return known.outcome
  if (!isBigger(outcome, limit)) return outcome
  const cut = Object.freeze(cutOutcome(outcome, limit, callId))
  cuts.set(outcome, { limit, callId, outcome: cut })
  return cut
}

/** All text of an outcome: what `read_tool_result` counts characters in. */
export function outcomeText(outcome: ToolOutcome): string {
  if (outcome.kind === 'denied') return outcome.reason
  if (outcome.kind === 'error') {
    const { message, detail } = outcome
    return detail === undefined ? message : `${message}\n${written(detail)}`
  }
  return outcome.content ? textOf(outcome.content) : written(outcome.value)
}

/** Lets a model read what `forModel` left out. */
export const readToolResult: Tool = tool<{ callId: string; from?: number; to?: number }>({
  name: 'read_tool_result',
  description:
    'Read part of an earlier tool result that was too long to be shown whole. Counts characters from 0; `to` is exclusive.',
  input: {
    type: 'object',
    properties: {
      callId: { type: 'string', description: 'The call id named where the result was cut.' },
      from: { type: 'integer', minimum: 0, description: 'First character; 0 by default.' },
      to: { type: 'integer', minimum: 0, description: `At most ${window} characters are returned.` },
    },
    required: ['callId'],
    additionalProperties: false,
  },
  effect: 'read',
  run({ callId, from = 0, to = from + window }, { session }) {
    const text = outcomeText(resultOf(session, callId))
    const end = Math.min(to, from + window, text.length)
    if (from >= text.length || end <= from) {
      throw new ToolError(
        'invalid-arguments',
        `The result of ${callId} has the characters 0 to ${text.length}; ${from} to ${to} is not a part of it.`,
      )
    }
    return `[characters ${from} to ${end} of ${text.length}]\n${text.slice(whole(text, from), whole(text, end))}`
  },
})

function resultOf(session: Session, callId: string): ToolOutcome {
  // The view first: where two branches used one id, it is the one that knows which of them the model means.
  const shown = session.messages().find(message => message.role === 'tool' && message.callId === callId)
  if (shown?.role === 'tool') return shown.outcome
  for (let i = session.length - 1; i >= 0; i--) {
    const chunk = session.chunks.at(i)
    if (chunk?.kind === 'tool-result' && chunk.callId === callId) return chunk.outcome
  }
  throw new ToolError('invalid-arguments', `No call ${callId} has a result in this session.`)
}

function cutOutcome(outcome: ToolOutcome, limit: number, callId: string | undefined): ToolOutcome {
  if (!(limit >= 0)) throw new RathError('invalid-argument', `limit is a number of characters, not ${limit}.`)
  const cut = cutText(outcomeText(outcome), limit, callId)
  if (outcome.kind === 'denied') return { kind: 'denied', reason: cut }
  if (outcome.kind === 'error') return { kind: 'error', error: outcome.error, message: cut }
  if (!outcome.content) return { kind: 'value', value: cut }
  const media = outcome.content.filter(part => part.type !== 'text')
  const content: Part[] = [{ type: 'text', text: cut }, ...media]
  return { kind: 'value', value: cut, content }
}

function cutText(text: string, limit: number, callId: string | undefined): string {
  if (text.length <= limit) return text
  const head = whole(text, Math.ceil(limit / 2))
  const tail = whole(text, text.length - Math.floor(limit / 2))
  const how =
    callId === undefined
      ? ''
      : `; read_tool_result({"callId":${JSON.stringify(callId)},"from":${head}}) reads on`
  const note = `[… ${tail - head} of ${text.length} characters are left out here${how} …]`
  return `${text.slice(0, head)}\n${note}\n${text.slice(tail)}`
}

/** A place to cut that does not lie inside a character of two units. */
function whole(text: string, index: number): number {
  const unit = text.charCodeAt(index - 1)
  const isInside = index > 0 && index < text.length && unit >= 0xd800 && unit <= 0xdbff
  return isInside ? index - 1 : index
}

function isBigger(outcome: ToolOutcome, limit: number): boolean {
  if (outcome.kind === 'denied') return outcome.reason.length > limit
  if (outcome.kind === 'error') return roomLeft(outcome.detail ?? null, limit - outcome.message.length) < 0
  if (!outcome.content) return roomLeft(outcome.value, limit) < 0
  return (
    outcome.content.reduce((room, part) => room - (part.type === 'text' ? part.text.length : 0), limit) < 0
  )
}

/** What is left of `room` once a value is written, or less than nothing as soon as that is sure. */
function roomLeft(value: Json, room: number): number {
  if (typeof value === 'string') return room - value.length
  if (typeof value !== 'object' || value === null) return room - 4
  let left = room - 2
  if (Array.isArray(value)) {
    for (let i = 0; i < value.length && left >= 0; i++) left = roomLeft(value[i] as Json, left - 1)
    return left
  }
  // Not Object.entries, which would list all of a huge value before the first look.
  for (const key in value) {
    left = roomLeft((value as JsonObject)[key] as Json, left - key.length - 4)
    if (left < 0) return left
  }
  return left
}

function written(value: Json): string {
  return typeof value === 'string' ? value : JSON.stringify(value)
}
