import type { AiSdkModel } from '../../src/model/drivers/ai-sdk/driver.ts'

// biome-ignore lint/suspicious/noExplicitAny: a fake plays whatever shape a version has
type Whatever = any

export interface Fake extends AiSdkModel {
  /** The options of every call. */
  readonly asked: Whatever[]
  /** True once the stream was cancelled by its reader. */
  cancelled: boolean
}

/** An AI SDK model that plays these stream parts, or this result. */
export function fakeSdk(
  version: 'v2' | 'v3' | 'v4',
  plays: { parts?: Whatever[]; result?: Whatever; error?: unknown; hang?: boolean },
  provider = 'fake.chat',
): Fake {
  const fake: Fake = {
    specificationVersion: version,
    provider,
    modelId: 'model-1',
    asked: [],
    cancelled: false,
    async doGenerate(options: Whatever) {
      fake.asked.push(options)
      if (plays.error) throw plays.error
      if (plays.hang) return new Promise(() => {})
      return plays.result
    },
    async doStream(options: Whatever) {
      fake.asked.push(options)
      if (plays.error) throw plays.error
      const stream = new ReadableStream({
        start(controller) {
          for (const part of plays.parts ?? []) controller.enqueue(part)
          if (!plays.hang) controller.close()
        },
        cancel() {
          fake.cancelled = true
        },
      })
      return { stream }
    },
  }
  return fake
}

export const usage = {
  v2: { inputTokens: 10, outputTokens: 5, totalTokens: 15, reasoningTokens: 2, cachedInputTokens: 4 },
  v3: {
    inputTokens: { total: 10, noCache: 6, cacheRead: 4, cacheWrite: 0 },
    outputTokens: { total: 5, text: 3, reasoning: 2 },
  },
}

export const finish = {
  v2: { type: 'finish', usage: usage.v2, finishReason: 'stop' },
  v3: { type: 'finish', usage: usage.v3, finishReason: { unified: 'stop', raw: 'end' } },
  v4: { type: 'finish', usage: usage.v3, finishReason: { unified: 'stop', raw: 'end' } },
}
