import type {
  LanguageModelV4,
  LanguageModelV4GenerateResult,
  LanguageModelV4StreamPart,
} from '@ai-sdk/provider'

const usage = {
  inputTokens: { total: 10, noCache: 10, cacheRead: 0, cacheWrite: 0 },
  outputTokens: { total: 5, text: 5, reasoning: 0 },
}

/** An AI SDK model that asks for a tool until it has seen `rounds` results, and answers at once. */
export function zeroLatency(rounds: number): LanguageModelV4 {
  return {
    specificationVersion: 'v4',
    provider: 'bench',
    modelId: 'zero-latency',
    supportedUrls: {},
    async doGenerate({ prompt }): Promise<LanguageModelV4GenerateResult> {
      let results = 0
      for (let i = prompt.length - 1; i >= 0 && prompt[i]?.role !== 'user'; i--)
        if (prompt[i]?.role === 'tool') results++
      if (results < rounds) {
        return {
          content: [
            { type: 'tool-call', toolCallId: `c${results}`, toolName: 'add', input: '{"a":1,"b":2}' },
          ],
          finishReason: { unified: 'tool-calls', raw: undefined },
          usage,
          warnings: [],
        }
      }
      return {
        content: [{ type: 'text', text: 'Three.' }],
        finishReason: { unified: 'stop', raw: undefined },
        usage,
        warnings: [],
      }
    },
    async doStream() {
      throw new Error('this model does not stream')
    },
  }
}

/** An AI SDK model that streams its answer in many small pieces. */
export function manyDeltas(count: number): LanguageModelV4 {
  return {
    ...zeroLatency(0),
    async doStream() {
      let sent = -2
      const part = (): LanguageModelV4StreamPart => {
        if (sent === -2) return { type: 'stream-start', warnings: [] }
        if (sent === -1) return { type: 'text-start', id: 't' }
        if (sent < count) return { type: 'text-delta', id: 't', delta: 'word ' }
        if (sent === count) return { type: 'text-end', id: 't' }
        return { type: 'finish', finishReason: { unified: 'stop', raw: undefined }, usage }
      }
      const stream = new ReadableStream<LanguageModelV4StreamPart>({
        pull(controller) {
          controller.enqueue(part())
          if (++sent > count + 1) controller.close()
        },
      })
      return { stream }
    },
  }
}
