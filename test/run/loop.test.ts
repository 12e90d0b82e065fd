import { describe, expect, expectTypeOf, it } from 'vitest'
import { z } from 'zod'
import { Agent } from '../../src/flow/agent.ts'
import { scripted } from '../../src/testing/scripted.ts'
import { tool } from '../../src/tool/tool.ts'
import { agentWith, ask, callsEcho, echo, failureOf, kinds, store } from './make.ts'

describe('an agent', () => {
  it('answers, runs tools and ends when the model is done, all on the record', async () => {
    const { agent, model } = agentWith([callsEcho('hi'), 'done'], { tools: [echo] })
    const input = ask()
    const out = await agent(input)
    expect(kinds(out)).toEqual(['user', 'assistant', 'tool-result', 'assistant'])
    expect(out.text).toBe('done')
    expect(out.lineage).toMatchObject({ parents: [input.id], operation: 'Agent', by: 'Agent' })
    expect(out.usage.totalTokens).toBeGreaterThan(0)
    expect(model.calls.map(call => call.messages.map(message => message.role))).toEqual([
      ['system', 'user'],
      ['system', 'user', 'assistant', 'tool'],
    ])
    expect((await store.sessions.get(out.id)).head).toBe(out.head)
    expect((await store.sessions.get(input.id)).head).toBe(input.head)
    model.done()
  })

  it('leaves its input as it was', async () => {
    const input = ask()
    const head = input.head
    await agentWith(['done']).agent(input)
    expect([input.length, input.head]).toEqual([1, head])
  })

  it('refuses an option that it does not have', () => {
    expect(() => agentWith(['x'], { memories: 'local' } as object)).toThrow(
      'An Agent has no option "memories". It takes model,',
    )
  })

  it('keeps its prompt once, and every answer names it', async () => {
    const { agent } = agentWith(['one', 'two'])
    const out = await agent(await agent(ask()))
    const answers = out.chunks.filter(chunk => chunk.kind === 'assistant')
    const prompts = new Set(answers.map(chunk => chunk.prompt))
    expect(prompts.size).toBe(1)
    const kept = await store.sessions.get(`prompt-${[...prompts][0]}`)
    expect(kept.chunks.at(0)?.text).toBe('Be brief.')
  })

  it('is cut short after maxRounds, which is marked and can be gone on from', async () => {
    const { agent } = agentWith((_, n) => (n < 5 ? callsEcho(`${n}`) : 'done'), {
      tools: [echo],
      maxRounds: 3,
    })
    const out = await agent(ask())
    expect(out.chunks.at(-1)).toMatchObject({ kind: 'error', error: 'max-rounds' })
    expect(out.pending).toEqual([])
    expect((await agent(out)).text).toBe('done')
  })

  it('goes on in the middle of a turn: calls without a result run first', async () => {
    const { agent, model } = agentWith(['done'], { tools: [echo] })
    const interrupted = ask().append({
      kind: 'assistant',
      toolCalls: [
        { id: 'a', name: 'echo', args: { text: 'A' } },
        { id: 'b', name: 'echo', args: { text: 'B' } },
      ],
    })
    const out = await agent(
      interrupted.append({
        kind: 'tool-result',
        callId: 'a',
        tool: 'echo',
        outcome: { kind: 'value', value: 'A' },
      }),
    )
    expect(kinds(out)).toEqual(['user', 'assistant', 'tool-result', 'tool-result', 'assistant'])
    expect(out.chunks.at(3)).toMatchObject({ callId: 'b', outcome: { kind: 'value', value: 'B' } })
    expect(model.calls).toHaveLength(1)
  })

  it('passes failures of tools to the model and goes on', async () => {
    const broken = tool({
      name: 'broken',
      description: '',
      input: { type: 'object' },
      run: () => {
        throw new Error('no luck')
      },
    })
    const { agent } = agentWith([{ toolCalls: [{ name: 'broken' }, { name: 'nothing' }] }, 'done'], {
      tools: [broken],
    })
    const out = await agent(ask())
    const outcomes = out.chunks.filter(chunk => chunk.kind === 'tool-result').map(chunk => chunk.outcome)
    expect(outcomes).toMatchObject([
      { kind: 'error', error: 'threw' },
      { kind: 'error', error: 'unknown-tool' },
    ])
    expect(out.text).toBe('done')
  })
})

describe('structured output', () => {
  const output = z.object({ words: z.number() })

  it('is asked for by schema and accepted when it fits', async () => {
    const { agent, model } = agentWith(['{"words":3}'], { output })
    expect(JSON.parse((await agent(ask())).text)).toEqual({ words: 3 })
    expect(model.calls[0]?.output?.schema).toMatchObject({ type: 'object', required: ['words'] })
  })

  it('is read as the value that the schema makes, with its type', async () => {
    const spelled = z.object({ words: z.number().transform(String), by: z.string().default('nobody') })
    const model = scripted(['```json\n{"words":3}\n```'])
    const agent = new Agent('Count.', { model, builtins: false, output: spelled })
    const read = await agent.outputOf(await agent(ask()))
    expectTypeOf(read).toEqualTypeOf<{ words: string; by: string }>()
    expect(read).toEqual({ words: '3', by: 'nobody' })
  })

  it('cannot be read from a session whose answer does not fit, or by an agent that asks for none', async () => {
    const { agent } = agentWith([], { output })
    const other = ask().append({ kind: 'assistant', text: '{"words":"three"}' })
    const misfit = await failureOf(agent.outputOf(other))
    expect(misfit).toMatchObject({ code: 'output-invalid', data: { text: '{"words":"three"}' } })
    expect(misfit.message).toContain('output.words')
    const plain = await failureOf(agentWith([]).agent.outputOf(other))
    expect(plain).toMatchObject({
      code: 'invalid-argument',
      message: expect.stringContaining('has no output'),
    })
  })

  it('of a call that was cut short is not that of the call before it', async () => {
    const { agent } = agentWith(['{"words":3}', callsEcho('one')], { output, tools: [echo] })
    const first = await agent(ask())
    const cut = await agent(first.user('And now?'), { budget: { rounds: 1 } })
    expect(await failureOf(agent.outputOf(cut))).toMatchObject({
      code: 'output-invalid',
      message: expect.stringContaining('cut short. The budget is used up: 1 of 1 rounds'),
    })
    const stop = { kind: 'error', error: 'budget-spent', message: 'Nobody chose.', retry: 'after' } as const
    expect(await agent.outputOf(first.append(stop))).toEqual({ words: 3 })
  })

  it('of any other shape than an object is asked for as the value of one', async () => {
    const list = z.array(z.object({ word: z.string() }))
    const { agent, model } = agentWith(['{"value":[{"word":"a"}]}', '[{"word":"b"}]'], { output: list })
    expect(await agent.outputOf(await agent(ask()))).toEqual([{ word: 'a' }])
    expect(await agent.outputOf(await agent(ask()))).toEqual([{ word: 'b' }])
    expect(model.calls[0]?.output?.schema).toMatchObject({
      type: 'object',
      properties: { value: { type: 'array' } },
      required: ['value'],
      additionalProperties: false,
    })
  })

  it('that refers to itself still does inside of an object', async () => {
    const tree = {
      anyOf: [{ type: 'string' }, { type: 'array', items: { $ref: '#' } }, { $ref: '#/$defs/leaf' }],
      $defs: { leaf: { type: 'null' } },
    }
    const { agent, model } = agentWith(['{"value":["a",["b"]]}'], { output: tree })
    expect(await agent.outputOf(await agent(ask()))).toEqual(['a', ['b']])
    expect(model.calls[0]?.output?.schema).toMatchObject({
      properties: {
        value: { anyOf: [{}, { items: { $ref: '#/properties/value' } }, { $ref: '#/$defs/leaf' }] },
      },
      $defs: tree.$defs,
    })
  })

  it('is sent back once with what is wrong', async () => {
    const { agent } = agentWith(['{"words":"three"}', '```json\n{"words":3}\n```'], { output })
    const out = await agent(ask())
    expect(kinds(out)).toEqual(['user', 'assistant', 'user', 'assistant'])
    expect(out.chunks.at(2)?.text).toContain('output.words')
  })

  it('fails with the text when it does not fit the second time either', async () => {
    const { agent } = agentWith(['nonsense', 'more nonsense'], { output })
    const error = await failureOf(agent(ask()))
    expect(error.code).toBe('output-invalid')
    expect(error.message).toContain('more nonsense')
    expect(error.session.text).toBe('more nonsense')
  })
})
