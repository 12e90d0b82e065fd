import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { RathError } from '../../src/base/errors.ts'
import { recorded } from '../../src/testing/recorded.ts'
import { scripted } from '../../src/testing/scripted.ts'
import { failure, generate, request, stream } from './ask.ts'

describe('a scripted model', () => {
  test('says its answers in order and lists what it was asked', async () => {
    const model = scripted(['One.', { text: 'Two.', reasoning: 'Hm.' }])
    expect((await stream(model)).answer.content).toEqual([{ type: 'text', text: 'One.' }])
    expect((await generate(model)).content).toEqual([
      { type: 'reasoning', text: 'Hm.' },
      { type: 'text', text: 'Two.' },
    ])
    expect(model.calls).toEqual([request(), request()])
    model.done()
  })

  test('asked more often than scripted fails by name', async () => {
    const model = scripted(['One.'])
    await generate(model)
    const error = await failure(generate(model))
    expect(error).toMatchObject({ code: 'script-mismatch', data: { asked: 2, answers: 1 } })
    expect(error.message).toContain('user: "Is the door open?"')
  })

  test('with answers left over says which', async () => {
    const model = scripted(['One.', 'Two.'])
    await generate(model)
    expect(() => model.done()).toThrow(/has 2 scripted answers and was asked 1 times.*"Two."/)
  })

  test('may be a function of the request and its number', async () => {
    const model = scripted(async ({ messages }, n) => `${n}: ${messages.length}`)
    expect((await stream(model)).streamed).toBe('0: 1')
    expect((await stream(model)).streamed).toBe('1: 1')
    model.done()
  })

  test('calls tools with ids that are the same every time', async () => {
    const model = scripted([
      { toolCalls: [{ name: 'now' }, { name: 'sum', args: [1, 2] }] },
      { toolCalls: [{ name: 'now', args: {}, id: 'mine' }, { name: 'now' }] },
    ])
    expect(await generate(model)).toMatchObject({
      content: [
        { type: 'tool-call', id: 'call-1', name: 'now', args: {} },
        { type: 'tool-call', id: 'call-2', name: 'sum', args: [1, 2] },
      ],
      finishReason: 'tool-calls',
    })
    expect((await generate(model)).content).toMatchObject([{ id: 'mine' }, { id: 'call-4' }])
  })

  test('streams in the pieces it is given', async () => {
    const { answer, deltas } = await stream(scripted([{ deltas: ['a', 'b'], toolCalls: [{ name: 'now' }] }]))
    expect(answer.content[0]).toEqual({ type: 'text', text: 'ab' })
    expect(deltas).toEqual([
      { type: 'text-delta', text: 'a' },
      { type: 'text-delta', text: 'b' },
      { type: 'tool-input-delta', callId: 'call-1', tool: 'now', text: '{}' },
    ])
  })

  test('counts a token for every four characters, or what it is told', async () => {
    const model = scripted(['12345678', { text: 'x', usage: { inputTokens: 100, cost: 0.5 } }])
    expect((await generate(model)).usage).toEqual({
      ...{ inputTokens: 5, outputTokens: 2, cachedInputTokens: 0, reasoningTokens: 0, totalTokens: 7 },
    })
    expect((await generate(model)).usage).toMatchObject({ inputTokens: 100, totalTokens: 101, cost: 0.5 })
  })

  test('fails as a provider would, after what it had said', async () => {
    const own = new RathError('model-broken-stream', 'Gone.')
    const model = scripted([
      { error: { status: 429, retryAfterMs: 1500 } },
      { error: { status: 500, message: 'Oops.' } },
      { error: 'no such luck' },
      { deltas: ['Ha'], error: own },
    ])
    expect(await failure(generate(model))).toMatchObject({
      code: 'model-rate-limited',
      data: { retryAfterMs: 1500 },
    })
    expect((await failure(generate(model))).code).toBe('model-overloaded')
    expect((await failure(generate(model))).message).toContain('no such luck')
    const said: string[] = []
    const { signal } = new AbortController()
    const asked = model.answer(request(), { signal, onDelta: delta => said.push(delta.text) })
    expect(await failure(asked)).toBe(own)
    expect(said).toEqual(['Ha'])
  })

  test('waits as told, and not after an abort', async () => {
    const waited: number[] = []
    const model = scripted([{ text: 'Late.', delayMs: 5000 }], { sleep: async ms => void waited.push(ms) })
    await generate(model)
    expect(waited).toEqual([5000])
    const slow = scripted([{ delayMs: 1e6 }])
    const abort = new AbortController()
    const asked = failure(slow.answer(request(), { signal: abort.signal }))
    abort.abort()
    expect((await asked).code).toBe('cancelled')
  })

  test('with a field that does not exist is refused', async () => {
    expect(() => scripted([{ toolcalls: [] } as never])).toThrow(
      /answers\[0\].toolcalls: not a field; there are text/,
    )
    expect(() => scripted([7 as never])).toThrow(/answers\[0\]: 7 is neither/)
    expect((await failure(generate(scripted(() => ({ txt: '' }) as never)))).message).toContain('txt')
  })
})

describe('a recorded model', () => {
  async function withFolder(work: (folder: string) => Promise<void>) {
    const folder = await mkdtemp(join(tmpdir(), 'openrath-recorded-'))
    try {
      await work(folder)
    } finally {
      await rm(folder, { recursive: true })
    }
  }

  test('plays back what another one answered, pieces included', () =>
    withFolder(async folder => {
      const source = scripted([{ deltas: ['Y', 'es'] }, { toolCalls: [{ name: 'now' }] }, 'Again.'])
      const recording = recorded(folder, { record: source })
      const other = { settings: { temperature: 0 } }
      const before = [await stream(recording), await stream(recording, other), await stream(recording)]
      expect(await readdir(folder)).toHaveLength(2)
      const playing = recorded(folder)
      expect([await stream(playing), await stream(playing, other), await stream(playing)]).toEqual(before)
      source.done()
    }))

  test('refuses a request that differs in anything, and one asked more often than recorded', () =>
    withFolder(async folder => {
      await generate(recorded(folder, { record: scripted(['Yes.']) }))
      const playing = recorded(folder)
      await generate(playing)
      expect((await failure(generate(playing))).message).toContain('asked 2 times')
      const error = await failure(generate(playing, { settings: { temperature: 1 } }))
      expect(error.code).toBe('recording-missing')
      expect(error.message).toContain(folder)
    }))

  test('records what is missing and plays the rest, also when asked at the same time', () =>
    withFolder(async folder => {
      await generate(recorded(folder, { record: scripted(['1']) }))
      const model = recorded(folder, { record: scripted(['2', '3', '4']) })
      const all = await Promise.all([1, 2, 3].map(() => generate(model)))
      expect(all.map(answer => answer.content[0])).toMatchObject([
        { text: '1' },
        { text: '2' },
        { text: '3' },
      ])
      const playing = recorded(folder)
      const again = [await generate(playing), await generate(playing), await generate(playing)]
      expect(again).toEqual(all)
    }))

  test('keeps every answer, whichever of those asked at the same time comes first', () =>
    withFolder(async folder => {
      const first = Promise.withResolvers<void>()
      const source = scripted(async (_, n) => {
        if (n === 0) await first.promise
        return `answer ${n + 1}`
      })
      const model = recorded(folder, { record: source })
      const slow = generate(model)
      const fast = await generate(model)
      first.resolve()
      const said = [await slow, fast]
      const playing = recorded(folder)
      expect([await generate(playing), await generate(playing)]).toEqual(said)
    }))

  test('does not record a failure', () =>
    withFolder(async folder => {
      const model = recorded(folder, { record: scripted([{ error: { status: 500 } }, 'Yes.']) })
      expect((await failure(generate(model))).code).toBe('model-overloaded')
      expect(await readdir(folder)).toEqual([])
    }))
})
