import { RathError, show } from '../base/errors.ts'

/** Turns texts into vectors. Texts that mean the same lie close together. */
export interface Embedder {
  /** Names the model and its version: vectors of another are made anew. */
  readonly model: string
  /** Taken from the first answer by default. */
  readonly dimensions?: number
  embed(
    texts: readonly string[],
    options: { readonly signal?: AbortSignal },
  ): Promise<readonly (readonly number[])[]>
}

/** An embedding model object of the AI SDK, versions 2 to 4 of its interface. */
export interface AiEmbeddingModel {
  readonly specificationVersion: string
  readonly modelId: string
  readonly provider: string
  readonly maxEmbeddingsPerCall?: number | undefined | PromiseLike<number | undefined>
  doEmbed(options: {
    values: string[]
    abortSignal?: AbortSignal
  }): PromiseLike<{ embeddings: readonly (readonly number[])[] }>
}

const mostAtOnce = 96

/** An embedder over any AI SDK embedding model, or the embedder itself. */
export function toEmbedder(model: Embedder | AiEmbeddingModel): Embedder {
  if (isEmbedder(model)) return model
  if (!isAiModel(model)) {
    throw new RathError(
      'invalid-argument',
      `embed takes an AI SDK embedding model, such as openai.embedding('text-embedding-3-small'), or { model, embed }, not ${show(model)}.`,
    )
  }
  return {
    model: `${model.provider}/${model.modelId}`,
    async embed(texts, { signal }) {
      const limit = Math.max(1, (await model.maxEmbeddingsPerCall) ?? mostAtOnce)
      const vectors: (readonly number[])[] = []
      for (let start = 0; start < texts.length; start += limit) {
        const values = texts.slice(start, start + limit)
        const { embeddings } = await model.doEmbed({ values, ...(signal && { abortSignal: signal }) })
        vectors.push(...embeddings)
      }
      return vectors
    },
  }
}

function isEmbedder(model: unknown): model is Embedder {
  const { model: name, embed } = (model ?? {}) as Partial<Embedder>
  return typeof name === 'string' && name !== '' && typeof embed === 'function'
}

function isAiModel(model: unknown): model is AiEmbeddingModel {
  const { specificationVersion, modelId, doEmbed } = (model ?? {}) as Partial<AiEmbeddingModel>
  return (
    typeof specificationVersion === 'string' && typeof modelId === 'string' && typeof doEmbed === 'function'
  )
}
