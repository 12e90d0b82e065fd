import { cancelledError, untilAbort } from '../../../base/abort.ts'
import { RathError, show } from '../../../base/errors.ts'
import { modelError } from '../../errors.ts'
import { type PriceTable, priceOf } from '../../prices.ts'
import type { Model, ModelAnswer, ModelContext, ModelRequest } from '../../spec.ts'
import { type AnswerContext, assemble, type Told } from './answer.ts'
import { Content } from './content.ts'
import { type Dialect, dialectOf } from './dialect.ts'
import { toCallOptions, unsaid } from './options.ts'
import type { Conversations } from './prompt.ts'
import { readStream } from './stream.ts'
import {
  type AiSdkModel,
  type CallOptions,
  type GenerateResult,
  isAiSdkModel,
  type StreamResult,
} from './types.ts'

export { type AiSdkModel, isAiSdkModel } from './types.ts'

export interface AiSdkOptions {
  /** `provider/name`, as chunks will record it; made of the model's own names by default. */
  readonly id?: string
  /** Prices that come before the list prices. */
  readonly prices?: PriceTable | undefined
  /** Keys that errors must not quote. */
  readonly secrets?: readonly string[] | undefined
}

/** A model that answers through an AI SDK language model. */
export function fromAiSdk(model: AiSdkModel, options: AiSdkOptions = {}): Model {
  if (!isAiSdkModel(model)) {
    throw new RathError(
      'invalid-argument',
      `${show(model)} is not an AI SDK language model: it needs specificationVersion v2, v3 or v4, a provider, a modelId, doGenerate and doStream.`,
    )
  }
  return new AiSdkDriver(model, options)
}

class AiSdkDriver implements Model {
  readonly id: string
  readonly #model: AiSdkModel
  readonly #dialect: Dialect
  readonly #prices: PriceTable | undefined
  readonly #secrets: readonly string[] | undefined
  readonly #conversations: Conversations = new WeakMap()

  constructor(model: AiSdkModel, { id, prices, secrets }: AiSdkOptions) {
    this.id = id ?? `${model.provider.split('.', 1)[0]}/${model.modelId}`
    this.#model = model
    this.#dialect = dialectOf(model)
    this.#prices = prices
    this.#secrets = secrets
  }

  get priced(): boolean {
    return priceOf(this.id, this.#prices) !== undefined
  }

  async answer(request: ModelRequest, { signal, onDelta }: ModelContext): Promise<ModelAnswer> {
    if (signal.aborted) throw cancelledError(signal)
    const context: AnswerContext = {
      model: this.id,
      cachedBesideInput: this.#dialect.cachedBesideInput,
      prices: this.#prices,
      secrets: this.#secrets,
      unsaid: unsaid(request, this.#dialect),
    }
    try {
      const options = toCallOptions(request, this.#dialect, signal, this.#conversations)
      return onDelta ? await this.#stream(options, context, onDelta) : await this.#generate(options, context)
    } catch (error) {
      throw signal.aborted ? cancelledError(signal) : modelError(error, context)
    }
  }

  async #stream(
    options: CallOptions,
    context: AnswerContext,
    onDelta: NonNullable<ModelContext['onDelta']>,
  ): Promise<ModelAnswer> {
    const signal = options.abortSignal
    const result = await untilAbort(
      this.#model.doStream(options as never) as PromiseLike<StreamResult>,
      signal,
      late => void late.stream.cancel().catch(() => {}),
    )
    const told: Told = { headers: result.response?.headers }
    const started = { ...context, started: true }
    const content = await readStream(result.stream, told, onDelta, signal, started)
    return assemble(content, told, started)
  }

  async #generate(options: CallOptions, context: AnswerContext): Promise<ModelAnswer> {
    const result = await untilAbort(
      this.#model.doGenerate(options as never) as PromiseLike<GenerateResult>,
      options.abortSignal,
    )
    const content = new Content()
    for (const part of result.content) {
      if (part.type === 'tool-call') content.call(part)
      else if (part.type === 'file') content.file(part)
      else if (part.type === 'text' || part.type === 'reasoning') content.say(part)
    }
    const { response } = result
    const told: Told = {
      ...result,
      responseId: response?.id,
      modelId: response?.modelId,
      headers: response?.headers,
    }
    return assemble(content, told, context)
  }
}
