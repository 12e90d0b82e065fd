import type { LanguageModelV2, LanguageModelV3, LanguageModelV4 } from '@ai-sdk/provider'
import { describe, expect, expectTypeOf, test } from 'vitest'
import { type AiSdkModel, fromAiSdk } from '../../src/model/drivers/ai-sdk/driver.ts'
import type { Message } from '../../src/session/message.ts'
import { failure, generate, request, stream } from './ask.ts'
import { fakeSdk, finish, usage } from './fake-sdk.ts'

const versions = ['v2', 'v3', 'v4'] as const

test('models of every version fit by shape', () => {
  expectTypeOf<LanguageModelV2>().toExtend<AiSdkModel>()
  expectTypeOf<LanguageModelV3>().toExtend<AiSdkModel>()
  expectTypeOf<LanguageModelV4>().toExtend<AiSdkModel>()
  const wrong = { ...fakeSdk('v4', {}), specificationVersion: 'v1' } as unknown as AiSdkModel
  expect(() => fromAiSdk(wrong)).toThrow(/specificationVersion v2, v3 or v4/)
})

for (const version of versions) {
  describe(`a model of specification ${version}`, () => {
    const parts = [
      { type: 'stream-start', warnings: [{ type: 'other', message: 'mind this' }] },
      { type: 'response-metadata', id: 'r1', modelId: 'model-1-exact', timestamp: new Date(0) },
      { type: 'reasoning-start', id: '0' },
      { type: 'reasoning-delta', id: '0', delta: 'Hm' },
      { type: 'reasoning-delta', id: '0', delta: '', providerMetadata: { fake: { signature: 's' } } },
      { type: 'reasoning-end', id: '0' },
      { type: 'text-start', id: '0' },
      { type: 'text-delta', id: '0', delta: 'Yes' },
      { type: 'text-end', id: '0' },
      { type: 'tool-input-start', id: 'c1', toolName: 'now' },
      { type: 'tool-input-end', id: 'c1' },
      { type: 'tool-call', toolCallId: 'c1', toolName: 'now', input: '' },
      { type: 'source', sourceType: 'url', id: 's', url: 'https://example.com' },
      finish[version],
    ]

    test('streams', async () => {
      const { answer, deltas } = await stream(fromAiSdk(fakeSdk(version, { parts })))
      expect(answer).toEqual({
        content: [
          { type: 'reasoning', text: 'Hm', extras: { fake: { signature: 's' } } },
          { type: 'text', text: 'Yes' },
          { type: 'tool-call', id: 'c1', name: 'now', args: {} },
        ],
        finishReason: 'tool-calls',
        usage: {
          inputTokens: 10,
          outputTokens: 5,
          cachedInputTokens: 4,
          reasoningTokens: 2,
          totalTokens: 15,
        },
        model: 'model-1-exact',
        extras: expect.objectContaining({
          responseId: 'r1',
          warnings: [{ type: 'other', message: 'mind this' }],
        }),
      })
      expect(deltas).toEqual([
        { type: 'reasoning-delta', text: 'Hm' },
        { type: 'text-delta', text: 'Yes' },
      ])
    })

    test('answers in one piece', async () => {
      const result = {
        content: [
          { type: 'text', text: 'Yes' },
          { type: 'tool-call', toolCallId: 'c1', toolName: 'sum', input: '[1,2]' },
        ],
        finishReason: finish[version].finishReason,
        usage: finish[version].usage,
        warnings: [],
        response: { id: 'r1', modelId: 'm' },
      }
      const answer = await generate(fromAiSdk(fakeSdk(version, { result })))
      expect(answer).toMatchObject({
        content: [
          { type: 'text', text: 'Yes' },
          { type: 'tool-call', id: 'c1', name: 'sum', args: [1, 2] },
        ],
        model: 'm',
        usage: { totalTokens: 15 },
      })
    })

    test('gives files, and takes files as its version spells them', async () => {
      const data = version === 'v4' ? { type: 'data', data: new Uint8Array([1, 2]) } : new Uint8Array([1, 2])
      const fake = fakeSdk(version, {
        parts: [{ type: 'file', mediaType: 'image/png', data }, finish[version]],
      })
      const image = { type: 'image', mediaType: 'image/png', data: 'AQI=' } as const
      const linked = { type: 'file', mediaType: 'application/pdf', url: 'https://example.com/a.pdf' } as const
      const messages: Message[] = [{ role: 'user', content: [image, linked] }]
      const { answer } = await stream(fromAiSdk(fake), { messages })
      expect(answer.content).toEqual([image])
      const sent = fake.asked[0].prompt[0].content.map((part: { data: unknown }) => part.data)
      const url = new URL('https://example.com/a.pdf')
      expect(sent).toEqual(
        version === 'v4'
          ? [
              { type: 'data', data: 'AQI=' },
              { type: 'url', url },
            ]
          : ['AQI=', url],
      )
    })

    test('is told of denied calls and of pictures in results in its own words', async () => {
      const fake = fakeSdk(version, { parts: [finish[version]] }, 'fake.other')
      const call = (id: string) => ({ type: 'tool-call', id, name: 'look', args: {} }) as const
      const messages: Message[] = [
        { role: 'user', content: [{ type: 'text', text: 'Look.' }] },
        { role: 'assistant', content: [call('c1'), call('c2')] },
        { role: 'tool', callId: 'c1', tool: 'look', outcome: { kind: 'denied', reason: 'no' } },
        {
          role: 'tool',
          callId: 'c2',
          tool: 'look',
          outcome: {
            kind: 'value',
            value: 1,
            content: [{ type: 'image', mediaType: 'image/png', data: 'AQI=' }],
          },
        },
      ]
      await stream(fromAiSdk(fake), { messages })
      const outputs = fake.asked[0].prompt[2].content.map((part: { output: unknown }) => part.output)
      const denied = 'The call was denied: no'
      expect(outputs[0]).toEqual(
        version === 'v2'
          ? { type: 'error-text', value: denied }
          : { type: 'execution-denied', reason: denied },
      )
      const picture = {
        v2: { type: 'media', data: 'AQI=', mediaType: 'image/png' },
        v3: { type: 'image-data', data: 'AQI=', mediaType: 'image/png' },
        v4: { type: 'file', data: { type: 'data', data: 'AQI=' }, mediaType: 'image/png' },
      }
      expect(outputs[1]).toEqual({ type: 'content', value: [picture[version]] })
    })
  })
}

describe('a stream', () => {
  test('that ends without a finish is broken, also as older versions report it', async () => {
    const text = [
      { type: 'text-start', id: '0' },
      { type: 'text-delta', id: '0', delta: 'Half' },
    ]
    const none = { inputTokens: undefined, outputTokens: undefined, totalTokens: undefined }
    const unknown = { type: 'finish', usage: none, finishReason: 'unknown' }
    const other = { type: 'finish', usage: {}, finishReason: { unified: 'other', raw: undefined } }
    const interrupted = { type: 'finish', usage: {}, finishReason: { unified: 'interrupted' } }
    for (const [version, ...end] of [['v4'], ['v2', unknown], ['v3', other], ['v4', interrupted]] as const) {
      const model = fromAiSdk(fakeSdk(version, { parts: [...text, ...end] }))
      expect((await failure(stream(model))).code).toBe('model-broken-stream')
    }
  })

  test('is cancelled on abort, also by a model that does not listen to the signal', async () => {
    const fake = fakeSdk('v4', { parts: [{ type: 'text-delta', id: '0', delta: 'a' }], hang: true })
    const abort = new AbortController()
    const onDelta = () => queueMicrotask(() => abort.abort())
    const asked = fromAiSdk(fake).answer(request(), { signal: abort.signal, onDelta })
    expect((await failure(asked)).code).toBe('cancelled')
    expect(fake.cancelled).toBe(true)

    const deaf = fromAiSdk(fakeSdk('v4', { hang: true }))
    const late = new AbortController()
    const waiting = failure(deaf.answer(request(), { signal: late.signal }))
    late.abort()
    expect((await waiting).code).toBe('cancelled')
  })

  test('is cancelled when an error comes in it', async () => {
    const fake = fakeSdk('v4', {
      parts: [{ type: 'error', error: { type: 'overloaded_error', message: 'Overloaded' } }],
      hang: true,
    })
    expect((await failure(stream(fromAiSdk(fake)))).code).toBe('model-overloaded')
    expect(fake.cancelled).toBe(true)
  })

  test('keeps parts in the order they began, however they interleave', async () => {
    const parts = [
      { type: 'text-delta', id: 'a', delta: '1' },
      { type: 'tool-input-start', id: 'c', toolName: 'sum' },
      { type: 'text-delta', id: 'b', delta: '3' },
      { type: 'tool-input-delta', id: 'c', delta: '{"x"' },
      { type: 'text-delta', id: 'a', delta: '2' },
      { type: 'tool-input-delta', id: 'c', delta: ':1}' },
      finish.v4,
    ]
    const { answer } = await stream(fromAiSdk(fakeSdk('v4', { parts })))
    expect(answer.content).toEqual([
      { type: 'text', text: '12' },
      { type: 'tool-call', id: 'c', name: 'sum', args: { x: 1 } },
      { type: 'text', text: '3' },
    ])
  })

  test('does not hand out calls that the provider ran itself', async () => {
    const call = {
      type: 'tool-call',
      toolCallId: 'w',
      toolName: 'web_search',
      input: '{}',
      providerExecuted: true,
    }
    const start = { type: 'tool-input-start', id: 'w', toolName: 'web_search', providerExecuted: true }
    const { answer } = await stream(fromAiSdk(fakeSdk('v4', { parts: [start, call, finish.v4] })))
    expect(answer).toMatchObject({
      content: [],
      finishReason: 'stop',
      extras: { providerTools: ['web_search'] },
    })
  })
})

test('an old Anthropic model counts its cache beside the input, and it is added', async () => {
  const metadata = { anthropic: { cacheCreationInputTokens: 3 } }
  const parts = [{ ...finish.v2, usage: usage.v2, providerMetadata: metadata }]
  const { answer } = await stream(fromAiSdk(fakeSdk('v2', { parts }, 'anthropic.messages')))
  expect(answer.usage).toMatchObject({ inputTokens: 17, cachedInputTokens: 4, totalTokens: 22 })
})

test('usage that was not reported is absent', async () => {
  const parts = [{ ...finish.v4, usage: { inputTokens: {}, outputTokens: {} } }]
  expect((await stream(fromAiSdk(fakeSdk('v4', { parts })))).answer).not.toHaveProperty('usage')
})

test('what a version cannot be told is said beside the answer', async () => {
  const settings = { reasoning: 'high' } as const
  const old = fakeSdk('v3', { parts: [finish.v3] })
  const { answer } = await stream(fromAiSdk(old), { settings })
  expect(answer.extras?.warnings).toEqual([expect.stringContaining('reasoning')])
  expect(old.asked[0]).not.toHaveProperty('reasoning')
  const now = fakeSdk('v4', { parts: [finish.v4] })
  await stream(fromAiSdk(now), { settings })
  expect(now.asked[0].reasoning).toBe('high')
})

describe('calls in one answer', () => {
  const call = (toolCallId: string, input: string) => ({
    type: 'tool-call',
    toolCallId,
    toolName: 'look',
    input,
  })
  const look = (id: string, args: unknown) => ({ type: 'tool-call', id, name: 'look', args })

  test('under one id, or none, are all there and have ids of their own', async () => {
    const content = [call('0', '{"at":1}'), call('0', '{"at":2}'), call('', '{}'), call('', '{}')]
    const result = { content, usage: usage.v3, finishReason: { unified: 'tool-calls' } }
    const { content: calls } = await generate(fromAiSdk(fakeSdk('v4', { result })))
    expect(calls).toEqual([
      look('0', { at: 1 }),
      look('0~2', { at: 2 }),
      look('call', {}),
      look('call~2', {}),
    ])
  })

  test('under one id stream apart', async () => {
    const streamed = (delta: string) => [
      { type: 'tool-input-start', id: '0', toolName: 'look' },
      { type: 'tool-input-delta', id: '0', delta },
      call('0', delta),
    ]
    const parts = [...streamed('{"at":1}'), ...streamed('{"at":2}'), finish.v4]
    const { answer, deltas } = await stream(fromAiSdk(fakeSdk('v4', { parts })))
    expect(answer.content).toEqual([look('0', { at: 1 }), look('0~2', { at: 2 })])
    expect(deltas).toMatchObject([{ callId: '0' }, { callId: '0~2' }])
  })

  test('whose arguments no JSON can hold keep them as the model wrote them', async () => {
    const result = { content: [call('0', '{"at":1e999}')], usage: usage.v3, finishReason: 'tool-calls' }
    const { content } = await generate(fromAiSdk(fakeSdk('v2', { result })))
    expect(content).toEqual([look('0', '{"at":1e999}')])
  })
})
