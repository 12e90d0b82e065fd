/** Tokens and money spent. `cost` is in US dollars and absent where no price is known. */
export interface Usage {
  readonly inputTokens: number
  readonly outputTokens: number
  /** The part of `inputTokens` that the provider read from its cache. */
  readonly cachedInputTokens: number
  /** The part of `outputTokens` that was reasoning. */
  readonly reasoningTokens: number
  readonly totalTokens: number
  readonly cost?: number
}

export const noUsage: Usage = Object.freeze({
  inputTokens: 0,
  outputTokens: 0,
  cachedInputTokens: 0,
  reasoningTokens: 0,
  totalTokens: 0,
})

export function addUsage(a: Usage, b: Usage): Usage {
  const sum = {
    inputTokens: a.inputTokens + b.inputTokens,
    outputTokens: a.outputTokens + b.outputTokens,
    cachedInputTokens: a.cachedInputTokens + b.cachedInputTokens,
    reasoningTokens: a.reasoningTokens + b.reasoningTokens,
    totalTokens: a.totalTokens + b.totalTokens,
  }
  const cost = a.cost === undefined && b.cost === undefined ? undefined : (a.cost ?? 0) + (b.cost ?? 0)
  return Object.freeze(cost === undefined ? sum : { ...sum, cost })
}
