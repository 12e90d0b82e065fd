import { show } from '../base/errors.ts'
import { copyJson, isPlainObject, type Json, type Problem } from '../base/json.ts'
import type { ToolOutcome } from '../session/chunk.ts'
import { saidParts } from '../session/chunk-fields.ts'
import { type Part, textOf } from '../session/part.ts'
import type { ToolFailure } from './spec.ts'
import { resultError, ToolError } from './tool-error.ts'

/** What a tool returned, in the form that a session records. */
export function outcomeOf(result: unknown, tool: string): ToolOutcome {
  try {
    const { value, content } = toValue(result, tool)
    return content === undefined ? { kind: 'value', value } : { kind: 'value', value, content }
  } catch (error) {
    // A result may have getters of its own, and those may throw anything.
    return error instanceof ToolError
      ? thrownOutcome(error)
      : failed('unreadable-result', `${tool} ran, but its result cannot be read: ${describeThrown(error)}`)
  }
}

/** The value and the parts of a result. Throws a `ToolError` that lists whatever JSON cannot hold. */
export function toValue(result: unknown, tool: string): { value: Json; content?: readonly Part[] } {
  if (result === undefined) return { value: null }
  if (typeof result === 'string' || result === null) return { value: result }
  const problems: Problem[] = []
  if (isContent(result)) {
    const content = saidParts(result.content, 'result.content', problems)
    const value = result.value === undefined ? textOf(content) : copyResult(result.value, problems)
    if (problems.length === 0) return { value, content }
  } else {
    const value = copyResult(result, problems)
    if (problems.length === 0) return { value }
  }
  throw resultError(tool, 'its result cannot be recorded', problems)
}

/** An error outcome. */
export function failed(error: ToolFailure, message: string, detail?: Json): ToolOutcome {
  return detail === undefined ? { kind: 'error', error, message } : { kind: 'error', error, message, detail }
}

/** What a tool threw: its name and message, never its stack. */
export function thrownOutcome(thrown: unknown): ToolOutcome {
  try {
    if (thrown instanceof ToolError) return failed(thrown.failure, thrown.message, thrown.detail)
  } catch {
    // A revoked proxy cannot even be asked what it is.
  }
  return failed('threw', describeThrown(thrown))
}

/** `TypeError: fetch failed (connect ECONNREFUSED 127.0.0.1:80)`: the causes say what the first line hides. */
export function describeThrown(thrown: unknown): string {
  try {
    if (!(thrown instanceof Error)) return typeof thrown === 'string' ? thrown : show(thrown)
    const causes: string[] = []
    for (let cause = thrown.cause; cause instanceof Error && causes.length < 3; cause = cause.cause) {
      if (cause.message !== '') causes.push(cause.message)
    }
    const known = causes.length > 0 ? ` (${causes.join('; ')})` : ''
    return `${thrown.name}: ${thrown.message}${known}`
  } catch {
    return 'an error that cannot be read'
  }
}

interface Content {
  readonly content: readonly Record<string, unknown>[]
  readonly value?: unknown
}

/** `{ content, value? }` and nothing else, whose content is parts. Any other object is a value that happens to have a content. */
function isContent(result: unknown): result is Content {
  if (!isPlainObject(result) || !Array.isArray(result.content) || result.content.length === 0) return false
  const isOther = (key: string) => key !== 'content' && key !== 'value'
  return !Object.keys(result).some(isOther) && result.content.every(isPart)
}

function isPart(part: unknown): boolean {
  return isPlainObject(part) && (part.type === 'text' || part.type === 'image' || part.type === 'file')
}

function copyResult(value: unknown, problems: Problem[]): Json {
  const before = problems.length
  const copy = copyJson(value, 'result', problems)
  if (problems.length === before) return copy
  const cycle = cycleIn(value)
  if (cycle) problems.splice(before, Infinity, cycle)
  const bytes = bytesIn(value, 'result', 0)
  if (bytes) problems.splice(before, 0, bytes)
  return copy
}

function cycleIn(value: unknown): Problem | undefined {
  const open = new Map<object, string>()
  const done = new Set<object>()
  const visit = (here: unknown, path: string): Problem | undefined => {
    if (typeof here !== 'object' || here === null || done.has(here)) return undefined
    const above = open.get(here)
    if (above !== undefined) return { path, message: `is ${above} again: it holds itself, and JSON cannot` }
    // Deeper than this is refused anyway, by its depth.
    if (open.size > 300 || !(Array.isArray(here) || isPlainObject(here))) return undefined
    open.set(here, path)
    for (const [key, member] of Object.entries(here)) {
      const found = visit(member, Array.isArray(here) ? `${path}[${key}]` : `${path}.${key}`)
      if (found) return found
    }
    open.delete(here)
    done.add(here)
    return undefined
  }
  return visit(value, 'result')
}

/** Bytes are the usual reason for a refusal, and the one where the model's tool author needs to hear what to write instead. */
function bytesIn(value: unknown, path: string, depth: number): Problem | undefined {
  if (value instanceof ArrayBuffer || ArrayBuffer.isView(value)) {
    return {
      path,
      message: `${value.byteLength} bytes; return text, or { content: [{ type: 'file', mediaType: 'application/pdf', data: bytes }] }, or { type: 'image', … }`,
    }
  }
  if (depth > 8 || !(Array.isArray(value) || isPlainObject(value))) return undefined
  for (const [key, member] of Object.entries(value).slice(0, 1000)) {
    const found = bytesIn(member, Array.isArray(value) ? `${path}[${key}]` : `${path}.${key}`, depth + 1)
    if (found) return found
  }
  return undefined
}
