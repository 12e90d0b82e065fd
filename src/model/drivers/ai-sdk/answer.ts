import { copyJson, type Json } from '../../../base/json.ts'
import { type AnswerPart, unnamed } from '../../../session/part.ts'
import { brokenStream, type Failing } from '../../errors.ts'
import { costOf, type PriceTable, priceOf } from '../../prices.ts'
import type { FinishReason, ModelAnswer } from '../../spec.ts'
import { type Content, plainMetadata } from './content.ts'
import { readFinish, readUsage } from './usage.ts'

/** Everything a provider said besides the content. */
export interface Told {
  finishReason?: unknown
  usage?: unknown
  providerMetadata?: unknown
  warnings?: unknown
  responseId?: string | undefined
  modelId?: string | undefined
  headers?: Readonly<Record<string, string>> | undefined
}

export interface AnswerContext extends Failing {
  readonly cachedBesideInput: boolean
  readonly prices: PriceTable | undefined
  /** What could not be said to the model. */
  readonly unsaid: readonly string[]
}

/** Puts an answer together once it is complete; throws when it turns out that it is not. */
export function assemble(content: Content, told: Told, context: AnswerContext): ModelAnswer {
  const finish = readFinish(told.finishReason)
  const counted = readUsage(told.usage, context.cachedBesideInput, told.providerMetadata)
  if (finish.reason === 'interrupted') throw brokenStream(context)
  // Older packages report a stream that was cut off as one that ended for an unknown reason. One that brought neither the
  // provider's own word for the end nor its count of tokens was cut off.
  if (finish.reason === 'other' && finish.raw === undefined && counted === undefined)
    throw brokenStream(context)

  const parts = withLostCall(content.parts(), finish.reason, content)
  const called = parts.some(part => part.type === 'tool-call')
  const price = counted && priceOf(context.model, context.prices)
  const extras = extrasOf(content, told, context, finish.raw)
  return {
    content: parts,
    finishReason: settle(finish.reason, called),
    ...(counted && {
      usage: price
        ? { ...counted.usage, cost: costOf(counted.usage, price, counted.cacheWriteTokens) }
        : counted.usage,
    }),
    ...(told.modelId && { model: told.modelId }),
    ...(Object.keys(extras).length > 0 && { extras }),
  }
}

/**
 * Packages drop a streamed call that has no name. An answer that says it calls a tool and holds nothing else is one: it is put back, for the
 * model to read what was wrong.
 */
function withLostCall(
  parts: AnswerPart[],
  reason: FinishReason | 'interrupted',
  { providerTools }: Content,
): AnswerPart[] {
  const isLost =
    reason === 'tool-calls' && providerTools.length === 0 && parts.every(part => part.type === 'reasoning')
  return isLost ? [...parts, { type: 'tool-call', id: 'call', name: unnamed, args: {} }] : parts
}

/** Gateways say `stop` beside tool calls, and `tool_calls` beside none. What the answer holds counts. */
function settle(reason: FinishReason, called: boolean): FinishReason {
  if (called && (reason === 'stop' || reason === 'other')) return 'tool-calls'
  if (!called && reason === 'tool-calls') return 'stop'
  return reason
}

function extrasOf(
  { providerTools }: Content,
  { responseId, warnings, headers, providerMetadata }: Told,
  { unsaid }: AnswerContext,
  rawFinish: string | undefined,
): Record<string, Json> {
  const extras: Record<string, Json> = {}
  if (responseId) extras.responseId = responseId
  if (rawFinish) extras.finish = rawFinish
  const warned = [...unsaid, ...(Array.isArray(warnings) ? warnings : [])]
  if (warned.length > 0) extras.warnings = copyJson(warned, '', [])
  if (providerTools.length > 0) extras.providerTools = providerTools
  const metadata = plainMetadata(providerMetadata)
  if (metadata) extras.metadata = metadata
  for (const [name, value] of Object.entries(headers ?? {})) {
    if (/ratelimit/i.test(name)) extras.rateLimits = { ...(extras.rateLimits as object), [name]: value }
  }
  return extras
}
