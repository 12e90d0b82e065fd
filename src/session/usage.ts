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

/** What a model of one's own left out is filled in, as on the chunk of its answer. */
export function completeUsage(usage: Partial<Usage>): Usage {
  const { inputTokens = 0, outputTokens = 0, cachedInputTokens = 0, reasoningTokens = 0, cost } = usage
  const { totalTokens = inputTokens + outputTokens } = usage
  const known = { inputTokens, outputTokens, cachedInputTokens, reasoningTokens, totalTokens }
  return cost === undefined ? known : { ...known, cost }
}

/** What is left of `a` without `b`, and never less than nothing. */
export function subtractUsage(a: Usage, b: Usage): Usage {
  const less = (one: number, other: number) => Math.max(0, one - other)
  const left = {
    inputTokens: less(a.inputTokens, b.inputTokens),
    outputTokens: less(a.outputTokens, b.outputTokens),
    cachedInputTokens: less(a.cachedInputTokens, b.cachedInputTokens),
    reasoningTokens: less(a.reasoningTokens, b.reasoningTokens),
    totalTokens: less(a.totalTokens, b.totalTokens),
  }
  return a.cost === undefined ? left : { ...left, cost: less(a.cost, b.cost ?? 0) }
}

/** What a chunk's own model call spent. A merge, a tool result or an effect only says what others did, each of whose chunks says so itself. */
export function spentBy(chunk: { readonly kind: string; readonly usage?: Usage }): Usage | undefined {
  return summing.has(chunk.kind) ? undefined : chunk.usage
}

const summing: ReadonlySet<string> = new Set(['merge', 'tool-result', 'effect'])

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
