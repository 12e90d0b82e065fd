import { describe, expect, test } from 'vitest'
import type { ModelAnswer } from '../../src/model/spec.ts'
import type { Message } from '../../src/session/message.ts'
import { failure, type Protocol, protocols, stream } from './ask.ts'
import { wireServer } from './wire-server.ts'

const tools = ['read_file', 'now'].map(name => ({
  name,
  description: 'A tool.',
  parameters: { type: 'object', properties: {} },
}))

/** Asks once, puts the answer into the history with results for its calls, and asks again. */
async function roundTrip(protocol: Protocol, file: string) {
  await using server = await wireServer({ file: `${protocol}/${file}.txt` }, { file: `${protocol}/text.txt` })
  const model = protocols[protocol](server.url)
  const asking: Message = { role: 'user', content: [{ type: 'text', text: 'Read both.' }] }
  const { answer, deltas } = await stream(model, { messages: [asking], tools })
  await stream(model, { messages: [asking, ...inHistory(answer)], tools })
  return { answer, deltas, again: server.seen[1]?.body }
}

function inHistory(answer: ModelAnswer): Message[] {
  const results = answer.content.flatMap((part): Message[] =>
    part.type === 'tool-call'
      ? [{ role: 'tool', callId: part.id, tool: part.name, outcome: { kind: 'value', value: 'done' } }]
      : [],
  )
  return [{ role: 'assistant', content: answer.content }, ...results]
}

const calls = (ids: readonly string[]) => [
  { type: 'tool-call', id: ids[0], name: 'read_file', args: { path: 'a.txt' } },
  { type: 'tool-call', id: ids[1], name: 'read_file', args: { path: 'b.txt' } },
  { type: 'tool-call', id: ids[2], name: 'now', args: {} },
]

describe('parallel calls, one without arguments', () => {
  test('of chat completions', async () => {
    const { answer, deltas, again } = await roundTrip('openai-chat', 'parallel-tools')
    expect(answer).toMatchObject({
      content: calls(['call_Qe1', 'call_Wd2', 'call_Zx3']),
      finishReason: 'tool-calls',
    })
    const pieces = deltas.flatMap(delta =>
      delta.type === 'tool-input-delta' ? [[delta.callId, delta.text]] : [],
    )
    expect(pieces.slice(0, 2)).toEqual([
      ['call_Qe1', '{"pa'],
      ['call_Qe1', 'th":"a.txt"}'],
    ])
    expect(again.messages[1].tool_calls.map((call: { id: string }) => call.id)).toEqual([
      'call_Qe1',
      'call_Wd2',
      'call_Zx3',
    ])
    expect(again.messages[1].tool_calls[2].function.arguments).toBe('{}')
  })

  test('of the responses API, with reasoning that goes back encrypted and nothing kept on the server', async () => {
    const { answer, again } = await roundTrip('openai-responses', 'reasoning-tools')
    expect(answer.content[0]).toMatchObject({
      type: 'reasoning',
      text: '**Looking**\n\nTwo files, then the clock.',
      extras: {
        openai: { itemId: 'rs_68af41', reasoningEncryptedContent: 'gAAAAABotest-encrypted-reasoning' },
      },
    })
    expect(answer.content.slice(1)).toMatchObject(calls(['call_Qe1', 'call_Wd2', 'call_Zx3']))
    expect(answer.finishReason).toBe('tool-calls')
    expect(again.store).toBe(false)
    expect(again.include).toEqual(['reasoning.encrypted_content'])
    expect(JSON.stringify(again)).not.toContain('item_reference')
    expect(again.input[1]).toMatchObject({
      type: 'reasoning',
      encrypted_content: 'gAAAAABotest-encrypted-reasoning',
      summary: [{ type: 'summary_text', text: '**Looking**\n\nTwo files, then the clock.' }],
    })
    expect(again.input.slice(2).map((item: { type: string }) => item.type)).toEqual([
      ...['function_call', 'function_call', 'function_call'],
      ...['function_call_output', 'function_call_output', 'function_call_output'],
    ])
  })

  test('of the responses API, when the arguments are empty text', async () => {
    const { answer } = await roundTrip('openai-responses', 'no-arguments')
    expect(answer.content).toMatchObject([{ type: 'tool-call', name: 'now', args: {} }])
  })

  test('of Anthropic, with thinking that goes back signed', async () => {
    const { answer, deltas, again } = await roundTrip('anthropic', 'thinking-tools')
    expect(answer.content).toMatchObject([
      {
        type: 'reasoning',
        text: 'Two files, then the clock.',
        extras: { anthropic: { signature: 'EqQBCgIYAhIM1gbcDa9GJwZA2b3h' } },
      },
      { type: 'reasoning', text: '', extras: { anthropic: { redactedData: 'EmwKAhgBEgy3va3pzix' } } },
      { type: 'text', text: 'I will look.' },
      ...calls(['toolu_01A', 'toolu_01B', 'toolu_01C']),
    ])
    expect(deltas.filter(delta => delta.type === 'reasoning-delta').map(delta => delta.text)).toEqual([
      'Two files,',
      ' then the clock.',
    ])
    expect(again.messages[1].content).toMatchObject([
      { type: 'thinking', thinking: 'Two files, then the clock.', signature: 'EqQBCgIYAhIM1gbcDa9GJwZA2b3h' },
      { type: 'redacted_thinking', data: 'EmwKAhgBEgy3va3pzix' },
      { type: 'text', text: 'I will look.' },
      { type: 'tool_use', id: 'toolu_01A', input: { path: 'a.txt' } },
      { type: 'tool_use', id: 'toolu_01B', input: { path: 'b.txt' } },
      { type: 'tool_use', id: 'toolu_01C', input: {} },
    ])
  })

  test('of a gateway that calls the end a stop, with reasoning', async () => {
    const { answer, again } = await roundTrip('gateway', 'reasoning-tools')
    expect(answer.content).toMatchObject([
      { type: 'reasoning', text: 'The user wants two files.' },
      ...calls(['chatcmpl-tool-1', 'chatcmpl-tool-2', 'chatcmpl-tool-3']),
    ])
    expect(answer.finishReason).toBe('tool-calls')
    expect(again.messages[1].reasoning_content).toBe('The user wants two files.')
  })

  test('of a gateway that signs them go back signed', async () => {
    const { answer, again } = await roundTrip('gateway', 'thought-signature')
    const call = answer.content.find(part => part.type === 'tool-call')
    expect(call?.extras).toEqual({ compatible: { thoughtSignature: 'CiQB0e' } })
    expect(again.messages[1].tool_calls[0]).toEqual({
      id: 'chatcmpl-tool-1',
      type: 'function',
      function: { name: 'read_file', arguments: '{"path":"a.txt"}' },
      extra_content: { google: { thought_signature: 'CiQB0e' } },
    })
  })

  test('whose arguments were not JSON can be told to every provider', async () => {
    for (const protocol of ['openai-chat', 'openai-responses', 'anthropic', 'gateway'] satisfies Protocol[]) {
      const { again } = await roundTrip(protocol, 'malformed-arguments')
      expect(again).toBeDefined()
    }
  })
})

describe('usage', () => {
  const used = async (protocol: Protocol, file = 'text') => {
    await using server = await wireServer({ file: `${protocol}/${file}.txt` })
    return (await stream(protocols[protocol](server.url))).answer
  }

  test('counts cached and reasoning tokens inside input and output', async () => {
    expect((await used('openai-chat')).usage).toMatchObject({
      ...{
        inputTokens: 1117,
        outputTokens: 46,
        cachedInputTokens: 1024,
        reasoningTokens: 20,
        totalTokens: 1163,
      },
    })
    expect((await used('openai-responses')).usage).toMatchObject({
      ...{
        inputTokens: 2048,
        outputTokens: 180,
        cachedInputTokens: 1920,
        reasoningTokens: 128,
        totalTokens: 2228,
      },
    })
    expect((await used('anthropic')).usage).toMatchObject({
      ...{
        inputTokens: 2052,
        outputTokens: 96,
        cachedInputTokens: 1792,
        reasoningTokens: 0,
        totalTokens: 2148,
      },
    })
    expect((await used('anthropic', 'thinking-tools')).usage).toMatchObject({ reasoningTokens: 30 })
  })

  test('of a gateway that sends it with the last choice is counted too, and has no cost', async () => {
    expect((await used('gateway')).usage).toEqual({
      ...{
        inputTokens: 300,
        outputTokens: 40,
        cachedInputTokens: 256,
        reasoningTokens: 25,
        totalTokens: 340,
      },
    })
  })

  test('has a cost where the model has a price, cache writes included', async () => {
    await using server = await wireServer({ file: 'anthropic/text.txt' })
    const { answer } = await stream(protocols.anthropic(server.url))
    expect(answer.usage?.cost).toBeCloseTo((12 * 4 + 1792 * 0.2 + 248 * 5 + 96 * 20) / 1e6, 12)
    const own = { 'openai-compatible/qwen*': { input: 1, output: 10 } }
    await using gateway = await wireServer({ file: 'gateway/text.txt' })
    const cheap = await stream(protocols.gateway(gateway.url, { prices: own }))
    expect(cheap.answer.usage?.cost).toBeCloseTo((300 + 400) / 1e6, 12)
  })

  test('comes with the model that answered and the id of the answer', async () => {
    const answer = await used('openai-responses')
    expect(answer.model).toBe('gpt-5.5-2026-04-23')
    expect(answer.extras?.responseId).toBe('resp_68af4030592c81938ec0a5fbab4a3e9f')
  })
})

test('an error before the first text keeps the meaning it would have had as a status', async () => {
  await using openai = await wireServer({ file: 'openai-responses/error-first.txt' })
  expect(await failure(stream(protocols['openai-responses'](openai.url)))).toMatchObject({
    code: 'model-rate-limited',
    data: { status: 429, provider: 'openai-compatible' },
  })
  await using anthropic = await wireServer({ file: 'anthropic/error-first.txt' })
  expect(await failure(stream(protocols.anthropic(anthropic.url)))).toMatchObject({
    code: 'model-overloaded',
  })
})

test('rate limits that a provider reports are kept beside the answer', async () => {
  const headers = { 'x-ratelimit-remaining-requests': '59' }
  await using server = await wireServer({ file: 'openai-chat/text.txt', headers })
  const { answer } = await stream(protocols['openai-chat'](server.url))
  expect(answer.extras?.rateLimits).toEqual(headers)
})
