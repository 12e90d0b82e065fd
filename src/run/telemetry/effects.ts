import type { Json, JsonObject } from '../../base/json.ts'
import type { ModelAnswer, ModelRequest } from '../../model/spec.ts'
import type { ToolOutcome } from '../../session/chunk.ts'
import type { Message } from '../../session/message.ts'
import type { AnswerPart } from '../../session/part.ts'
import type { Usage } from '../../session/usage.ts'
import type { PreparedCall } from '../../tool/prepare.ts'
import type { ModelFailure, Outcome } from '../entry.ts'
import type { Timed } from './meters.ts'
import { type Attributes, spanKind } from './otel.ts'
import type { TracedQuestion } from './tracing.ts'

/** An effect as a span shows it. */
export interface EffectSpan<T> {
  readonly name: string
  readonly kind: number
  readonly timed: Timed
  /** What its metrics are told apart by; the span has it too. */
  readonly measured: Attributes
  readonly attributes: Attributes
  /** What was said, for those who asked for it. */
  content(): Content
  ended(result: T): EffectEnd
}

export type Content = Readonly<Record<string, Json>>

export interface EffectEnd {
  readonly attributes?: Attributes
  /** What its metrics are told apart by besides. */
  readonly measured?: Attributes
  /** Code of the failure, when it is one. */
  readonly error?: string
  readonly usage?: Usage
  readonly content?: Content
}

export function modelSpan({ model, about, request }: TracedQuestion): EffectSpan<Outcome<'model'>> {
  const { settings, output } = about
  const measured = { 'gen_ai.operation.name': 'chat', ...modelAttributes(model.id) }
  return {
    name: `chat ${measured['gen_ai.request.model']}`,
    kind: spanKind.client,
    timed: 'operation',
    measured,
    attributes: {
      'gen_ai.request.temperature': settings.temperature,
      'gen_ai.request.top_p': settings.topP,
      'gen_ai.request.top_k': settings.topK,
      'gen_ai.request.max_tokens': settings.maxOutputTokens,
      'gen_ai.request.stop_sequences': settings.stop && [...settings.stop],
      'gen_ai.request.seed': settings.seed,
      'gen_ai.request.frequency_penalty': settings.frequencyPenalty,
      'gen_ai.request.presence_penalty': settings.presencePenalty,
      'gen_ai.output.type': output && 'json',
    },
    content: () => requestContent(request()),
    ended: ({ value, error }) => (value === undefined ? unanswered(error) : answered(value.answer)),
  }
}

function answered(answer: ModelAnswer): EffectEnd {
  const { finishReason, usage, model } = answer
  const response = { 'gen_ai.response.model': model && modelAttributes(model)['gen_ai.request.model'] }
  return {
    attributes: {
      ...response,
      'gen_ai.response.finish_reasons': [finishReason],
      ...(usage && {
        'gen_ai.usage.input_tokens': usage.inputTokens,
        'gen_ai.usage.output_tokens': usage.outputTokens,
        'gen_ai.usage.cache_read.input_tokens': usage.cachedInputTokens,
        'gen_ai.usage.reasoning.output_tokens': usage.reasoningTokens,
        'openrath.cost': usage.cost,
      }),
    },
    measured: response,
    ...(usage && { usage }),
    content: answerContent(answer),
  }
}

function unanswered({ code, message, spent }: ModelFailure): EffectEnd {
  return { error: code ?? 'budget-spent', ...failureContent(message ?? spent) }
}

export function toolSpan({ tool, call, args }: PreparedCall): EffectSpan<Outcome<'tool'>> {
  const measured = {
    'gen_ai.operation.name': 'execute_tool',
    'gen_ai.tool.name': tool.name,
    'gen_ai.tool.type': 'function',
  }
  return {
    name: `execute_tool ${tool.name}`,
    kind: spanKind.internal,
    timed: 'tool',
    measured,
    attributes: {
      'gen_ai.tool.call.id': call.id,
      'gen_ai.tool.description': tool.description,
      'openrath.tool.effect': tool.effect,
    },
    content: () => ({ 'gen_ai.tool.call.arguments': args }),
    ended: ({ value, error, inside: { sessions, usage } = {} }) => {
      if (value === undefined) return { error: error.code }
      const { outcome, evidence } = value
      return {
        attributes: {
          'openrath.tool.outcome': outcome.kind,
          'openrath.sandbox': evidence?.ranOn?.backend as string | undefined,
          'openrath.workspace.tree': evidence?.tree,
          'openrath.tool.session': sessions?.at(-1)?.session,
          // Of the spans inside: they are counted there, and not a second time in metrics.
          'openrath.tool.tokens': usage?.totalTokens,
          'openrath.tool.cost': usage?.cost,
        },
        ...(outcome.kind === 'error' && { error: outcome.error }),
        content: { 'gen_ai.tool.call.result': resultOf(outcome) },
      }
    },
  }
}

/** What the conventions call our operations. */
const memoryOperations: Readonly<Record<string, string>> = {
  recall: 'search_memory',
  known: 'search_memory',
  remember: 'create_memory',
  commit: 'upsert_memory',
  forget: 'delete_memory',
}

export function memorySpan({ op, memory, query, entry, ref }: JsonObject): EffectSpan<Outcome<'memory'>> {
  const operation = memoryOperations[op as string] ?? String(op)
  const store = memory as string
  return {
    // Stores may be called after folders, and names of spans are to be few.
    name: operation,
    kind: spanKind.client,
    timed: 'operation',
    measured: { 'gen_ai.operation.name': operation, 'gen_ai.provider.name': 'openrath' },
    attributes: { 'gen_ai.memory.store.id': store, 'openrath.memory.operation': op as string },
    content: () => ({
      ...(query !== undefined && { 'gen_ai.memory.query.text': query }),
      ...(entry !== undefined && { 'gen_ai.memory.records': [entry] }),
      ...(ref !== undefined && { 'gen_ai.memory.record.id': ref }),
    }),
    ended: ({ value, error }) => {
      if (error === undefined) return { attributes: { 'gen_ai.memory.record.count': recordsIn(value) } }
      const { code, message } = error as { code?: string; message?: string }
      return { error: code ?? 'run-failed', ...failureContent(message) }
    },
  }
}

/** Of what the operations of an agent's memory return: what was found, written or ended. */
function recordsIn(value: Json): number | undefined {
  if (Array.isArray(value)) return value.length
  const { hits, memory, count, committed } = value as {
    readonly hits?: readonly Json[]
    readonly memory?: Json
    readonly count?: number
    readonly committed?: { readonly written: readonly Json[] }
  }
  return hits?.length ?? committed?.written.length ?? count ?? (memory === undefined ? undefined : 1)
}

function failureContent(message: string | undefined): Pick<EffectEnd, 'content'> {
  return message === undefined ? {} : { content: { 'openrath.error.message': message } }
}

/** `provider/name` in two, the provider as the conventions write it. */
export function modelAttributes(id: string): {
  'gen_ai.provider.name': string
  'gen_ai.request.model': string
} {
  const slash = id.indexOf('/')
  const provider = slash < 0 ? '_OTHER' : id.slice(0, slash)
  return {
    'gen_ai.provider.name': provider === 'azure' ? 'azure.ai.openai' : provider,
    'gen_ai.request.model': id.slice(slash + 1),
  }
}

/** What was said to a model, in the words of the conventions: a value for each attribute. */
function requestContent({ messages, tools }: ModelRequest): Readonly<Record<string, Json>> {
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

function answerContent({ content, finishReason }: ModelAnswer): Readonly<Record<string, Json>> {
  return {
    'gen_ai.output.messages': [
      { role: 'assistant', parts: content.map(partOf), finish_reason: finishReason },
    ],
  }
}

/** What a tool gave, or why it gave nothing. */
function resultOf(outcome: ToolOutcome): Json {
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
