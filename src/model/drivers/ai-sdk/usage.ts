import type { Usage } from '../../../session/usage.ts'
import type { FinishReason } from '../../spec.ts'

/** Tokens as a provider reported them, with what the usage of a session has no field for. */
export interface Counted {
  readonly usage: Usage
  /** The part of the input that went into the provider's cache. */
  readonly cacheWriteTokens: number
}

/** Reads the flat usage of v2 and the nested one of v3 and v4; nothing where the provider reported none. */
export function readUsage(
  usage: unknown,
  cachedBesideInput: boolean,
  metadata?: unknown,
): Counted | undefined {
  if (typeof usage !== 'object' || usage === null) return undefined
  const { inputTokens: input, outputTokens: output } = usage as Record<string, unknown>
  const flat = usage as Record<string, unknown>
  const deepIn = fields(input)
  const deepOut = fields(output)
  let inputTokens = count(deepIn ? deepIn.total : input)
  const outputTokens = count(deepOut ? deepOut.total : output)
  if (inputTokens === undefined && outputTokens === undefined) return undefined
  const cachedInputTokens = count(deepIn ? deepIn.cacheRead : flat.cachedInputTokens) ?? 0
  let cacheWriteTokens = count(deepIn?.cacheWrite) ?? 0
  if (cachedBesideInput) {
    cacheWriteTokens = count(fields(fields(metadata)?.anthropic)?.cacheCreationInputTokens) ?? 0
    inputTokens = (inputTokens ?? 0) + cachedInputTokens + cacheWriteTokens
  }
  const sum = (inputTokens ?? 0) + (outputTokens ?? 0)
  return {
    usage: {
      inputTokens: inputTokens ?? 0,
      outputTokens: outputTokens ?? 0,
      cachedInputTokens,
      reasoningTokens: count(deepOut ? deepOut.reasoning : flat.reasoningTokens) ?? 0,
      totalTokens: Math.max(sum, count(flat.totalTokens) ?? 0),
    },
    cacheWriteTokens,
  }
}

export interface Finish {
  /** `interrupted`: the provider's package saw the stream end without the provider's last word. */
  readonly reason: FinishReason | 'interrupted'
  /** The provider's own word. */
  readonly raw?: string
}

/** Reads the plain word of v2 and the pair of words of v3 and v4. */
export function readFinish(reason: unknown): Finish {
  const pair = fields(reason)
  const word = pair ? pair.unified : reason
  const raw = typeof pair?.raw === 'string' ? { raw: pair.raw } : {}
  switch (word) {
    case 'stop':
    case 'length':
    case 'content-filter':
    case 'tool-calls':
    case 'error':
    case 'interrupted':
      return { reason: word, ...raw }
    default:
      return { reason: 'other', ...raw }
  }
}

function fields(value: unknown): Record<string, unknown> | undefined {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : undefined
}

function count(value: unknown): number | undefined {
  return typeof value === 'number' && Number.isFinite(value) && value >= 0 ? value : undefined
}
