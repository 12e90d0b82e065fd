import type { Json, JsonObject } from '../base/json.ts'
import type { Message } from '../session/message.ts'
import type { AnswerPart } from '../session/part.ts'
import type { Usage } from '../session/usage.ts'
import type { RetryOptions } from './retry.ts'

/**
 * Something that answers. The request and the answer are plain JSON: they are what is recorded, hashed and replayed.
 * Whatever dialect a provider speaks stays inside the driver.
 */
export interface Model {
  /** `provider/name`, as chunks record it. */
  readonly id: string
  /** Whether its answers say what they cost, in `usage.cost`. A budget of `cost` refuses a model that does not say `true`. */
  readonly priced?: boolean | undefined
  /** The model that this one only stands before. */
  readonly wraps?: Model | undefined
  /** Asked one after the other when this one gives no answer. */
  readonly fallbacks?: readonly FallbackModel[] | undefined
  /**
   * One answer to one request, or an error that says whether trying again can help (`RathError.retry`, and `data.retryAfterMs`
   * where the provider named a time). It never retries by itself. Aborting the signal closes the connection.
   */
  answer(request: ModelRequest, context: ModelContext): Promise<ModelAnswer>
}

/** A model that is asked after another one, with what its provider says about how to use it. */
export interface FallbackModel extends Model {
  readonly settings?: ModelSettings | undefined
  readonly retry?: RetryOptions | undefined
}

export interface ModelContext {
  readonly signal: AbortSignal
  /** Told about every piece as it arrives. Never throws. Absent when nobody listens: the driver may then skip streaming. */
  readonly onDelta?: ((delta: ModelDelta) => void) | undefined
  /** The run that asks, and what a resumed one has taken from its record so far instead of asking this model: for models that keep count. */
  readonly run?: { readonly id: string; recorded(): readonly ModelAnswer[] } | undefined
}

export interface ModelRequest {
  /** Valid for every provider: see `viewMessages`. */
  readonly messages: readonly Message[]
  readonly tools: readonly ToolDescription[]
  /** `auto` by default. A name forces that tool. */
  readonly toolChoice?: 'auto' | 'none' | 'required' | { readonly name: string }
  /** Ask for JSON of this shape instead of text. */
  readonly output?: { readonly name: string; readonly schema: JsonObject }
  readonly settings: ModelSettings
}

/** What a model is told about a tool. */
export interface ToolDescription {
  readonly name: string
  readonly description: string
  /** JSON Schema of the arguments object. */
  readonly parameters: JsonObject
}

export interface ModelSettings {
  readonly temperature?: number
  readonly topP?: number
  readonly topK?: number
  readonly maxOutputTokens?: number
  readonly stop?: readonly string[]
  readonly seed?: number
  readonly frequencyPenalty?: number
  readonly presencePenalty?: number
  readonly reasoning?: 'none' | 'minimal' | 'low' | 'medium' | 'high' | 'xhigh'
  /** Mark the stable beginning of the request for the provider's prefix cache; true by default. */
  readonly cache?: boolean
  /** Passed to the provider as they are, by provider name. */
  readonly providerOptions?: JsonObject
}

export type ModelDelta =
  | { readonly type: 'text-delta'; readonly text: string }
  | { readonly type: 'reasoning-delta'; readonly text: string }
  | {
      readonly type: 'tool-input-delta'
      readonly callId: string
      readonly tool: string
      readonly text: string
    }

export type FinishReason = 'stop' | 'length' | 'tool-calls' | 'content-filter' | 'error' | 'other'

export interface ModelAnswer {
  /** In the order the model said it. A tool call whose arguments were not JSON has the raw text as `args`. */
  readonly content: readonly AnswerPart[]
  readonly finishReason: FinishReason
  /** Absent where the provider reported none. `cost` is filled in from the price table where it has the model. */
  readonly usage?: Usage
  /** The model that answered, where the provider names it more exactly than the request did. */
  readonly model?: string
  /** Provider metadata worth keeping: response id, warnings, rate limits. */
  readonly extras?: { readonly [name: string]: Json }
}
