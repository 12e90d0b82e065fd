import { describe, expect, it } from 'vitest'
import type { Chunk } from '../../src/session/chunk.ts'
import { tool } from '../../src/tool/tool.ts'
import { agentWith, ask, callsEcho, echo, kinds, store } from './make.ts'

describe('many at once', () => {
  it('1,000 concurrent agents each make their own session', async () => {
    const { agent } = agentWith(
      ({ messages }) => (messages.length < 6 ? callsEcho(`${messages.length}`) : 'done'),
      {
        tools: [echo],
      },
    )
    const outs = await Promise.all(Array.from({ length: 1000 }, (_, i) => agent(ask(`task ${i}`))))
    expect(new Set(outs.map(out => out.id)).size).toBe(1000)
    for (const [i, out] of outs.entries()) {
      expect(out.chunks.at(0)?.text).toBe(`task ${i}`)
      expect(out.length).toBe(6)
      expect(out.verify().ok).toBe(true)
    }
  })

  it('500 calls in one turn have their results in the order asked', async () => {
    const texts = Array.from({ length: 500 }, (_, i) => `${i}`)
    const { agent } = agentWith(
      [{ toolCalls: texts.map(text => ({ name: 'echo', args: { text } })) }, 'done'],
      {
        tools: [echo],
      },
    )
    const out = await agent(ask())
    const values = out.chunks.flatMap(chunk =>
      chunk.kind === 'tool-result' && chunk.outcome.kind === 'value' ? [chunk.outcome.value] : [],
    )
    expect(values).toEqual(texts)
  })

  it('a tool may call an agent on a fork of its own session', async () => {
    const { agent: helper } = agentWith(() => 'helped', { name: 'helper' })
    const delegate = tool({
      name: 'delegate',
      description: '',
      input: { type: 'object' },
      run: async (_args, { session }) => (await helper(session.fork('help').user('help me'))).text,
    })
    const { agent } = agentWith([{ toolCalls: [{ name: 'delegate' }, { name: 'delegate' }] }, 'done'], {
      tools: [delegate],
    })
    expect(kinds(await agent(ask()))).toEqual([
      'user',
      'assistant',
      'tool-result',
      'tool-result',
      'assistant',
    ])
  })

  it('an agent is a tool of another', async () => {
    const { agent: expert, model } = agentWith(['42'], { name: 'expert' })
    const { agent } = agentWith(
      [{ toolCalls: [{ name: 'ask_expert', args: { request: 'the answer?' } }] }, 'done'],
      {
        tools: [expert.asTool({ name: 'ask_expert', description: 'Knows.' })],
      },
    )
    const out = await agent(ask())
    expect(out.chunks.at(2)).toMatchObject({ outcome: { kind: 'value', value: '42' } })
    expect(model.calls[0]?.messages.at(-1)).toMatchObject({ role: 'user' })
  })

  it('an agent that is a tool answers the same in every run, and its session is named beside the answer', async () => {
    const run = () => {
      const { agent: expert } = agentWith(['42'], { name: 'expert' })
      const asks = { toolCalls: [{ name: 'ask_expert', args: { request: 'the answer?' } }] }
      const tools = [expert.asTool({ name: 'ask_expert', description: 'Knows.' })]
      return agentWith([asks, 'done'], { tools }).agent(ask())
    }
    const [one, other] = await Promise.all([run(), run()])
    expect(one.state).toBe(other.state)
    const named = [one, other].map(
      out => (out.chunks.at(2) as Chunk<'tool-result'>).sessions?.[0]?.session as string,
    )
    expect(new Set(named).size).toBe(2)
    for (const id of named) expect((await store.sessions.get(id)).text).toBe('42')
  })
})

describe('a tool that hands its own session on', () => {
  it('does not run its own turn again', async () => {
    let runs = 0
    const { agent: helper } = agentWith(() => 'helped', { name: 'helper' })
    const delegate = tool({
      name: 'delegate',
      description: '',
      input: { type: 'object' },
      run: async (_args, { session }) => {
        runs++
        return (await helper(session.fork())).text
      },
    })
    const { agent } = agentWith([{ toolCalls: [{ name: 'delegate' }] }, 'done'], { tools: [delegate] })
    const out = await agent(ask())
    expect(runs).toBe(1)
    expect(out.chunks.at(2)).toMatchObject({ outcome: { kind: 'value', value: 'helped' } })
  })
})
