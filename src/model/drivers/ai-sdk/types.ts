import type { Json, JsonObject } from '../../../base/json.ts'

/**
 * Any AI SDK language model of specification v2, v3 or v4, by shape: `openai('gpt-5.5')` of any provider package fits. What the
 * methods take and give differs between the versions and is told apart inside this driver.
 */
export interface AiSdkModel {
  readonly specificationVersion: 'v2' | 'v3' | 'v4'
  /** `openai.responses`, `anthropic.messages` … */
  readonly provider: string
  readonly modelId: string
  doGenerate(options: never): PromiseLike<unknown>
  doStream(options: never): PromiseLike<unknown>
}

export function isAiSdkModel(value: unknown): value is AiSdkModel {
  if (typeof value !== 'object' || value === null) return false
  const model = value as Partial<AiSdkModel>
  return (
    /^v[234]$/.test(String(model.specificationVersion)) &&
    typeof model.modelId === 'string' &&
    typeof model.provider === 'string' &&
    typeof model.doGenerate === 'function' &&
    typeof model.doStream === 'function'
  )
}

/** Provider options and metadata, by provider. */
export type ByProvider = { readonly [provider: string]: JsonObject }

/** What is put into a model's hands: the fields of the three versions that we use. */
export interface CallOptions {
  prompt: PromptMessage[]
  tools?: { type: 'function'; name: string; description: string; inputSchema: JsonObject }[]
  toolChoice?: { type: 'auto' | 'none' | 'required' } | { type: 'tool'; toolName: string }
  responseFormat?: { type: 'json'; name: string; schema: JsonObject }
  maxOutputTokens?: number
  temperature?: number
  topP?: number
  topK?: number
  stopSequences?: string[]
  seed?: number
  frequencyPenalty?: number
  presencePenalty?: number
  reasoning?: string
  abortSignal: AbortSignal
  providerOptions?: ByProvider
}

export interface PromptMessage {
  role: 'system' | 'user' | 'assistant' | 'tool'
  content: string | PromptPart[]
  providerOptions?: ByProvider
}

export type PromptPart = { type: string; providerOptions?: ByProvider } & Record<string, unknown>

/** What comes out of a stream. Parts of other types are passed over. */
export type StreamPart =
  | {
      type: 'text-start' | 'text-end' | 'reasoning-start' | 'reasoning-end'
      id: string
      providerMetadata?: unknown
    }
  | { type: 'text-delta' | 'reasoning-delta'; id: string; delta: string; providerMetadata?: unknown }
  | { type: 'tool-input-start'; id: string; toolName: string; providerExecuted?: boolean }
  | { type: 'tool-input-delta'; id: string; delta: string }
  | ToolCallContent
  | FileContent
  | { type: 'stream-start'; warnings?: unknown }
  | { type: 'response-metadata'; id?: string; modelId?: string }
  | { type: 'finish'; usage: unknown; finishReason: unknown; providerMetadata?: unknown }
  | { type: 'error'; error: unknown }

export interface ToolCallContent {
  type: 'tool-call'
  toolCallId: string
  toolName: string
  input: Json | undefined
  providerExecuted?: boolean
  providerMetadata?: unknown
}

export interface FileContent {
  type: 'file'
  mediaType: string
  /** Bytes or base64; tagged since v4. */
  data: unknown
  providerMetadata?: unknown
}

export interface StreamResult {
  stream: ReadableStream<StreamPart>
  response?: { headers?: Record<string, string> }
}

export interface GenerateResult {
  content: readonly (
    | { type: 'text' | 'reasoning'; text: string; providerMetadata?: unknown }
    | ToolCallContent
    | FileContent
  )[]
  finishReason: unknown
  usage: unknown
  warnings?: unknown
  providerMetadata?: unknown
  response?: { id?: string; modelId?: string; headers?: Record<string, string> }
}
