import * as api from '@opentelemetry/api'
import { describe, expect, it } from 'vitest'
import { Agent } from '../../src/flow/agent.ts'
import { Workflow } from '../../src/flow/workflow.ts'
import { createRuntime } from '../../src/run/runtime.ts'
import { loadOtel, type Otel } from '../../src/run/telemetry/otel.ts'
import type { Session } from '../../src/session/session.ts'
import type { StoreOptions } from '../../src/store/spec.ts'
import { scripted } from '../../src/testing/scripted.ts'
import { counted } from './journal/make.ts'
import { agentWith, ask, callsEcho, echo, failureOf } from './make.ts'
import { open } from './memory/make.ts'
import { one, type Point, watched } from './telemetry-make.ts'

/** Says `plum` wherever something can be said, and fails with it too. */
async function plums() {
  const fails = counted('fails', 'read', {
    run: () => {
      throw new Error('plum is no number')
    },
  }).tool
  const memory = await open()
  class Plums extends Workflow {
    writer = new Agent('You like plum.', {
      model: scripted([
        { reasoning: 'plum?', toolCalls: [{ name: 'echo', args: { text: 'plum' } }, { name: 'fails' }] },
        'plum!',
        'plum again',
      ]),
      tools: [echo, fails],
      builtins: false,
      memory,
      output: { type: 'object' },
    })

    async forward(session: Session) {
      await this.writer.remember('Ada ate a plum.')
      await this.writer.forget('plum')
      return this.writer(session)
    }
  }
  return new Plums()
}

async function plumSpans(content: boolean, redact?: StoreOptions['redact']) {
  const seen = await watched({ content, ...(redact && { redact }) })
  const { code } = await failureOf(seen.runtime.run(await plums(), ask('A plum?')))
  expect(code).toBe('output-invalid')
  return seen
}

const told = (spans: readonly { attributes: object; events: unknown; status: unknown; links: unknown }[]) =>
  JSON.stringify(spans.map(({ attributes, events, status, links }) => [attributes, events, status, links]))

describe('what was said and done', () => {
  it('is on no span and no metric unless it was asked for', async () => {
    const { spans, metrics } = await plumSpans(false)
    expect(spans().length).toBeGreaterThan(8)
    expect(told(spans())).not.toContain('plum')
    expect(JSON.stringify(await metrics())).not.toContain('plum')
  })

  it('is on the spans of the effects when it was', async () => {
    const { spans } = await plumSpans(true)
    const all = spans()
    const chats = all.filter(({ name }) => name === 'chat model')
    const read = (index: number, name: string) =>
      JSON.parse(String(chats[index]?.attributes[`gen_ai.${name}`]))
    expect(read(0, 'system_instructions')).toEqual([{ type: 'text', content: 'You like plum.' }])
    expect(read(0, 'input.messages')).toMatchObject([
      { role: 'user', parts: [{ type: 'text', content: 'A plum?' }] },
      { role: 'user', parts: [{ content: expect.stringContaining('Ada ate a plum.') }] },
    ])
    expect(read(0, 'tool.definitions')).toMatchObject([{ type: 'function', name: 'echo' }, {}, {}])
    expect(read(0, 'output.messages')).toEqual([
      {
        role: 'assistant',
        parts: [
          { type: 'reasoning', content: 'plum?' },
          { type: 'tool_call', id: 'call-1', name: 'echo', arguments: { text: 'plum' } },
          { type: 'tool_call', id: 'call-2', name: 'fails', arguments: {} },
        ],
        finish_reason: 'tool-calls',
      },
    ])
    expect(read(1, 'input.messages').slice(3)).toEqual([
      { role: 'tool', parts: [{ type: 'tool_call_response', id: 'call-1', response: 'plum' }] },
      {
        role: 'tool',
        parts: [
          {
            type: 'tool_call_response',
            id: 'call-2',
            response: expect.objectContaining({ message: expect.stringContaining('plum is no number') }),
          },
        ],
      },
    ])
    expect(one(all, 'execute_tool echo').attributes).toMatchObject({
      'gen_ai.tool.call.arguments': '{"text":"plum"}',
      'gen_ai.tool.call.result': 'plum',
    })
    expect(one(all, 'search_memory').attributes['gen_ai.memory.query.text']).toBe('A plum?')
    expect(one(all, 'create_memory').attributes['gen_ai.memory.records']).toContain('Ada ate a plum.')
  })

  it('has the secrets taken out that the store takes out', async () => {
    const { spans } = await plumSpans(true, text => text.replaceAll('plum', 'fruit'))
    expect(told(spans())).toContain('gen_ai.output.messages')
    expect(told(spans())).not.toContain('plum')
  })
})

describe('metrics', () => {
  it('count tokens, money, time, failures and attempts', async () => {
    const { runtime, metrics } = await watched()
    const usage = { inputTokens: 100, outputTokens: 7, totalTokens: 107, cost: 0.25 }
    const { agent } = agentWith(
      [{ error: { status: 529 } }, { ...callsEcho('x'), usage }, { text: 'done', usage }],
      {
        tools: [echo],
      },
    )
    const bad = agentWith([{ error: { status: 401 } }], { name: 'bad' }).agent
    await runtime.run(agent, ask())
    await failureOf(runtime.run(bad, ask()))
    const found = await metrics()
    const values = (name: string) =>
      found[name]?.map(({ attributes, value }: Point) => [attributes, value]) ?? []
    const chat = {
      'gen_ai.operation.name': 'chat',
      'gen_ai.provider.name': 'scripted',
      'gen_ai.request.model': 'model',
    }
    expect(values('gen_ai.client.token.usage')).toMatchObject([
      [
        { ...chat, 'gen_ai.token.type': 'input' },
        { count: 2, sum: 200 },
      ],
      [
        { ...chat, 'gen_ai.token.type': 'output' },
        { count: 2, sum: 14 },
      ],
    ])
    expect(values('openrath.cost')).toEqual([[chat, 0.5]])
    expect(values('openrath.retries')).toEqual([[{ ...chat, 'error.type': 'model-overloaded' }, 1]])
    expect(values('gen_ai.client.operation.duration')).toMatchObject([
      [chat, { count: 2, buckets: { boundaries: expect.arrayContaining([0.01, 81.92]) } }],
      [{ ...chat, 'error.type': 'model-unauthorized' }, { count: 1 }],
    ])
    expect(values('gen_ai.execute_tool.duration')).toMatchObject([
      [{ 'gen_ai.tool.name': 'echo' }, { count: 1 }],
    ])
    expect(values('gen_ai.invoke_agent.duration')).toMatchObject([
      [{ 'gen_ai.agent.name': 'Agent' }, { count: 1 }],
      [{ 'gen_ai.agent.name': 'bad', 'error.type': 'model-unauthorized' }, { count: 1 }],
    ])
    expect(
      values('openrath.errors').map(([attributes, value]) => [
        (attributes as Point['attributes'])['gen_ai.operation.name'],
        value,
      ]),
    ).toEqual([
      ['chat', 1],
      ['invoke_agent', 1],
    ])
  })
})

describe('telemetry', () => {
  it('is refused when it is none, before anything runs', () => {
    for (const telemetry of ['yes', 7, []] as never[])
      expect(() => createRuntime({ telemetry })).toThrow(/telemetry is true, false or options/)
    expect(() => createRuntime({ telemetry: { contents: true } as never })).toThrow(
      /no option "contents"; it takes tracer, meter, content/,
    )
  })

  it('needs of the API what the API has', () => {
    const needed: Otel = api
    expect(Object.keys(loadOtel())).toEqual(expect.arrayContaining(Object.keys(needed)))
  })

  it('says what to install where the API is not', () => {
    const missing = () => {
      throw Object.assign(new Error('no such module'), { code: 'MODULE_NOT_FOUND' })
    }
    expect(() => loadOtel(missing)).toThrow(/npm install @opentelemetry\/api/)
  })
})
