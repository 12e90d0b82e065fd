import { RathError, show } from '../../base/errors.ts'
import { isPlainObject, type Json, type JsonObject } from '../../base/json.ts'
import { lengthOf, link } from '../chain.ts'
import type { Chunk } from '../chunk.ts'
import { lineage } from '../lineage.ts'
import { parseChunk } from '../parse.ts'
import type { SessionValue } from '../value.ts'
import type { VerificationProblem } from '../verify.ts'
import { malformed, type Section } from './section.ts'

const newestSchema = 1

/**
 * A session file of OpenRath Python v1: a `header`, `chunk` lines and a `trailer`. A partial file, one without a
 * trailer, is read as far as it goes. Digests are new: the Python format has none to keep.
 */
export class PythonSection implements Section {
  readonly #header: Record<string, unknown>
  readonly #at: number
  readonly #pieces: unknown[] = []
  #trailer: Record<string, unknown> | undefined
  #damage: VerificationProblem | undefined

  constructor(header: Record<string, unknown>, line: number) {
    const version = header.schema_version
    if (typeof version === 'number' && version > newestSchema) {
      throw new RathError(
        'format-newer',
        `This OpenRath Python file has schema ${version}, and this openrath reads up to ${newestSchema}.`,
        { data: { version, reads: newestSchema } },
      )
    }
    if (typeof header.id !== 'string' || header.id === '') throw malformed(line, 'is a header without an id')
    this.#header = header
    this.#at = Date.parse(String(header.created_at)) || 0
    if (isPlainObject(header.sandbox_spec) || typeof header.sandbox_backend === 'string') {
      if (typeof header.sandbox_backend === 'string') this.#pieces.push(placement(header))
    }
  }

  add(record: Record<string, unknown>, line: number): boolean {
    switch (record.record_type) {
      case 'chunk':
        this.#pieces.push(toChunk(record, line))
        return false
      case 'trailer':
        this.#trailer = record
        return true
      default:
        throw malformed(
          line,
          `has the record_type ${show(record.record_type)}; known are header, chunk, trailer`,
        )
    }
  }

  result(): { value: SessionValue; damage: VerificationProblem | undefined } {
    const chunks = this.#withUsage()
    let tip: Chunk | undefined
    for (const [i, piece] of chunks.entries()) tip = link(tip, parseChunk(piece, this.#at, `chunk ${i}`))
    const expected = this.#trailer?.final_chunk_count
    const rows = lengthOf(tip) - (typeof this.#header.sandbox_backend === 'string' ? 1 : 0)
    if (!this.#trailer)
      this.#damage = { reason: 'the trailer is missing: the Python process did not close this file' }
    else if (typeof expected === 'number' && expected !== rows) {
      this.#damage = { reason: `the trailer counts ${expected} chunks, and ${rows} are here` }
    }
    return {
      value: { id: this.#header.id as string, tip, branch: '', lineage: this.#lineage() },
      damage: this.#damage,
    }
  }

  #lineage() {
    const header = this.#header
    const parents = Array.isArray(header.parent_session_ids) ? header.parent_session_ids.map(String) : []
    const extras: Record<string, Json> = { importedFrom: 'openrath-python-1' }
    for (const name of ['lineage_operator', 'lineage_kind', 'lineage_extras', 'sandbox_handle_id']) {
      const value = header[name]
      if (value !== undefined && value !== null) extras[name] = value as Json
    }
    const usage = this.#trailer?.cumulative_usage
    if (isPlainObject(usage) && this.#lastAnswer() < 0) extras.cumulative_usage = usage as JsonObject
    return lineage('import', parents, { at: this.#at, extras })
  }

  #lastAnswer(): number {
    return this.#pieces.findLastIndex(piece => isPlainObject(piece) && piece.kind === 'assistant')
  }

  /** The trailer knows only the sum, so it goes on the last answer; without one it stays with the lineage. */
  #withUsage(): unknown[] {
    const usage = this.#trailer?.cumulative_usage
    if (!isPlainObject(usage)) return this.#pieces
    const last = this.#lastAnswer()
    return this.#pieces.map((piece, i) =>
      i === last
        ? {
            ...(piece as object),
            usage: {
              inputTokens: usage.prompt_tokens ?? 0,
              outputTokens: usage.completion_tokens ?? 0,
              totalTokens: usage.total_tokens ?? 0,
            },
          }
        : piece,
    )
  }
}

function placement(header: Record<string, unknown>): object {
  const spec = isPlainObject(header.sandbox_spec) ? (header.sandbox_spec as JsonObject) : undefined
  const path = spec?.working_dir
  return {
    kind: 'placement',
    backend: header.sandbox_backend,
    spec: typeof path === 'string' && path !== '' ? path : undefined,
    // The environment of a Python spec may hold keys; it stays behind.
    extras: spec ? { image: spec.image ?? null, timeoutSeconds: spec.timeout_seconds ?? null } : undefined,
  }
}

function toChunk({ kind, payload }: Record<string, unknown>, line: number): object {
  if (!isPlainObject(payload)) throw malformed(line, 'is a chunk without a payload object')
  const content = payload.content ?? ''
  switch (kind) {
    case 'system':
    case 'user':
      return content === '' ? emptyRow(kind) : { kind, content: String(content) }
    case 'assistant': {
      const calls = Array.isArray(payload.tool_calls) ? payload.tool_calls : []
      const toolCalls = calls.map(call => toCall(call, line))
      return {
        kind,
        text: String(content),
        toolCalls,
        finishReason: toolCalls.length > 0 ? 'tool-calls' : 'stop',
      }
    }
    case 'tool_result':
      return toResult(payload, line)
    default:
      throw malformed(
        line,
        `has the chunk kind ${show(kind)}; known are system, user, assistant, tool_result`,
      )
  }
}

function emptyRow(kind: string): object {
  return { kind: 'note', name: 'empty-message', data: { kind } }
}

function toCall(call: unknown, line: number): object {
  const made = isPlainObject(call) && isPlainObject(call.function) ? call.function : undefined
  if (!isPlainObject(call) || made === undefined) throw malformed(line, 'has a tool call without a function')
  return { id: String(call.id), name: String(made.name), args: parsed(made.arguments) }
}

function toResult(payload: Record<string, unknown>, line: number): object {
  const { tool_call_id: callId, name, content } = payload
  if (typeof callId !== 'string' || typeof name !== 'string')
    throw malformed(line, 'is a tool result without its call')
  const value = parsed(content)
  const failed = isPlainObject(value) && value.ok === false && typeof value.error_kind === 'string'
  const outcome = failed
    ? { kind: 'error', error: value.error_kind, message: String(value.message ?? ''), detail: value.detail }
    : { kind: 'value', value }
  return { kind: 'tool-result', callId, tool: name, outcome }
}

/** Python kept arguments and results as JSON text; text that is not JSON is kept as it is. */
function parsed(value: unknown): unknown {
  if (typeof value !== 'string') return value ?? null
  try {
    return JSON.parse(value)
  } catch {
    return value
  }
}
