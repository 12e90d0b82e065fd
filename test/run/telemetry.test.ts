import { describe, expect, it } from 'vitest'
import { Agent } from '../../src/flow/agent.ts'
import { Compressor } from '../../src/flow/compressor.ts'
import { Parallel } from '../../src/flow/containers.ts'
import { Selector } from '../../src/flow/selector.ts'
import { Workflow } from '../../src/flow/workflow.ts'
import type { RunEvent } from '../../src/run/event.ts'
import type { Session } from '../../src/session/session.ts'
import { scripted } from '../../src/testing/scripted.ts'
import { calls, counted } from './journal/make.ts'
import { agentWith, ask, callsEcho, echo, failureOf } from './make.ts'
import { open } from './memory/make.ts'
import { effectsInSpans, effectsOnRecord, one, parentOf, type Span, watched } from './telemetry-make.ts'

/** Agents side by side, one inside another's tool, a memory, a retry, a tool that fails, a choice, a summary. */
async function team() {
  const memory = await open()
  const helper = agentWith(['helped']).agent
  const fails = counted('fails', 'read', {
    run: () => {
      throw new Error('the disk is full')
    },
  }).tool
  class Team extends Workflow {
    lead = agentWith(
      [
        { error: { status: 529 } },
        { toolCalls: [{ name: 'help', args: { request: 'please' } }, { name: 'fails' }] },
        'led',
      ],
      {
        tools: [helper.asTool({ name: 'help', description: 'Helps.' }), fails],
        memory,
        commitOnForward: true,
      },
    ).agent
    pair = new Parallel({
      left: agentWith([callsEcho('l'), 'left'], { tools: [echo] }).agent,
      right: agentWith([callsEcho('r'), 'right'], { tools: [echo] }).agent,
    })
    choose = new Selector({ model: scripted(['short']) })
    short = new Compressor('Shorten.', { model: scripted(['short']), keep: { tokens: 1 } })

    async forward(session: Session) {
      await this.lead.remember('Ada leads.')
      let out = await this.pair(this.lead(session))
      const next = await this.choose(out, this.short)
      out = await next(out)
      return out
    }
  }
  return new Team()
}

async function teamRun() {
  const seen = await watched()
  const events: RunEvent[] = []
  const pending = seen.runtime.run(await team(), ask(), { onEvent: (event: RunEvent) => events.push(event) })
  const out = await pending
  return { ...seen, events, out, run: pending.runId }
}

const isCall = ({ attributes }: Span) => attributes['openrath.effect.key'] === undefined

describe('the spans of a run', () => {
  it('are the effects in its journal and the calls in its events, one to one', async () => {
    const { spans, store, events, run } = await teamRun()
    const all = spans()
    expect(all.every(span => span.attributes['openrath.run.id'] === run)).toBe(true)
    const recorded = await effectsOnRecord(store, run)
    expect(recorded.length).toBeGreaterThan(12)
    expect(effectsInSpans(all)).toEqual(recorded)
    const told = events.flatMap(({ type, by, sessionId }) =>
      type === 'run-start' ? [`${by} ${sessionId}`] : [],
    )
    const called = all
      .filter(isCall)
      .map(({ attributes: { 'openrath.by': by, 'openrath.session.id': id } }) => `${by} ${id}`)
    expect(called.sort()).toEqual(told.sort())
  })

  it('say what the chunks of its session say', async () => {
    const { spans, out } = await teamRun()
    const chats = spans().filter(({ name }) => name === 'chat model')
    const toolSpans = spans().filter(({ name }) => name.startsWith('execute_tool'))
    for (const chunk of out.chunks) {
      if (chunk.kind === 'tool-result') {
        const span = toolSpans.filter(
          ({ attributes }) =>
            attributes['gen_ai.tool.call.id'] === chunk.callId && attributes['openrath.by'] === chunk.by,
        )
        expect(span).toHaveLength(1)
        expect(span[0]?.attributes).toMatchObject({
          'gen_ai.tool.name': chunk.tool,
          'openrath.tool.outcome': chunk.outcome.kind,
        })
      }
    }
    const answers = out.chunks.filter(chunk => chunk.kind === 'assistant')
    for (const answer of answers) {
      const found = chats.filter(
        ({ attributes }) =>
          attributes['openrath.by'] === answer.by &&
          attributes['gen_ai.usage.input_tokens'] === answer.usage?.inputTokens &&
          attributes['gen_ai.usage.output_tokens'] === answer.usage?.outputTokens &&
          (attributes['gen_ai.response.finish_reasons'] as string[])[0] === answer.finishReason,
      )
      expect(found.length, `${answer.by}: ${answer.text}`).toBeGreaterThan(0)
    }
    expect(answers.length).toBeGreaterThan(4)
    // The helper, the choice and the summary are on no assistant chunk of this session.
    expect(chats).toHaveLength(answers.length + 3)
  })

  it('lie inside the call or the tool that made them', async () => {
    const { spans } = await teamRun()
    const all = spans()
    const parent = (name: string) => parentOf(one(all, name), all)
    expect(parentOf(one(all, 'invoke_workflow Team'), all)).toBeUndefined()
    expect(parent('create_memory')).toBe('invoke_workflow Team')
    expect(parent('invoke_agent lead')).toBe('invoke_workflow Team')
    expect(parent('invoke_workflow pair')).toBe('invoke_workflow Team')
    expect(parent('search_memory')).toBe('invoke_agent lead')
    expect(parent('upsert_memory')).toBe('invoke_agent lead')
    expect(parent('execute_tool help')).toBe('invoke_agent lead')
    expect(parent('invoke_agent tools.help')).toBe('execute_tool help')
    expect(parent('invoke_agent left')).toBe('invoke_workflow pair')
    expect(parent('invoke_agent right')).toBe('invoke_workflow pair')
    for (const side of ['left', 'right']) {
      const { spanId } = one(all, `invoke_agent ${side}`).spanContext()
      const inside = all.filter(span => span.parentSpanContext?.spanId === spanId)
      expect(inside.map(({ name }) => name)).toEqual(['chat model', 'execute_tool echo', 'chat model'])
      for (const { attributes } of inside) expect(attributes['openrath.by']).toBe(`Team/pair/${side}`)
    }
    expect(new Set(all.map(span => span.spanContext().traceId)).size).toBe(1)
  })

  it('follow the conventions and name run, session, branch, lane and state', async () => {
    const { spans, out, run } = await teamRun()
    const all = spans()
    expect(one(all, 'invoke_workflow Team')).toMatchObject({
      kind: 0,
      status: { code: 0 },
      attributes: {
        'gen_ai.operation.name': 'invoke_workflow',
        'gen_ai.workflow.name': 'Team',
        'gen_ai.conversation.id': out.chunks.at(0)?.id,
        'openrath.run.id': run,
        'openrath.session.id': out.id,
        'openrath.state': out.state,
        'openrath.operation': 'Team',
        'openrath.branch': '',
        'openrath.lane': '',
        'openrath.status': 'done',
      },
    })
    const left = one(all, 'invoke_agent left')
    expect(left.attributes).toMatchObject({
      'gen_ai.operation.name': 'invoke_agent',
      'gen_ai.agent.name': 'left',
      'gen_ai.provider.name': 'scripted',
      'gen_ai.request.model': 'model',
      'openrath.branch': 'left',
    })
    expect(left.attributes['openrath.lane']).not.toBe('')
    expect(one(all, 'execute_tool fails').attributes).toMatchObject({
      'gen_ai.operation.name': 'execute_tool',
      'gen_ai.tool.type': 'function',
      'openrath.tool.effect': 'read',
    })
    expect(one(all, 'search_memory').attributes).toMatchObject({
      'gen_ai.memory.store.id': expect.stringMatching(/^local:/),
      'openrath.memory.operation': 'recall',
      'gen_ai.memory.record.count': expect.any(Number),
    })
  })

  it('show attempts that failed as events of the one that went on', async () => {
    const { spans } = await teamRun()
    const tried = spans().filter(({ events }) => events.length > 0)
    expect(tried).toHaveLength(1)
    expect(tried[0]).toMatchObject({
      name: 'chat model',
      status: { code: 0 },
      events: [
        { name: 'openrath.retry', attributes: { 'openrath.attempt': 1, 'error.type': 'model-overloaded' } },
      ],
    })
  })

  it('carry the settings of a request', async () => {
    const { runtime, spans } = await watched()
    const said = scripted(['{"a":1}'])
    const model = {
      id: 'azure/gpt-x',
      answer: (...given: Parameters<typeof said.answer>) => said.answer(...given),
      settings: { temperature: 0.5, maxOutputTokens: 9, stop: ['.'] },
    }
    await runtime.run(new Agent('Be brief.', { model, builtins: false, output: { type: 'object' } }), ask())
    expect(one(spans(), 'chat gpt-x')).toMatchObject({
      kind: 2,
      attributes: {
        'gen_ai.provider.name': 'azure.ai.openai',
        'gen_ai.request.temperature': 0.5,
        'gen_ai.request.max_tokens': 9,
        'gen_ai.request.stop_sequences': ['.'],
        'gen_ai.output.type': 'json',
      },
    })
  })
})

describe('a failure', () => {
  it('is the status of the effect and of every call around it, by its code alone', async () => {
    const { runtime, spans, store } = await watched()
    class Around extends Workflow {
      writer = agentWith([{ error: { status: 401, message: 'the key sk-12345678 is bad' } }]).agent
      forward(session: Session) {
        return this.writer(session)
      }
    }
    const pending = runtime.run(new Around(), ask())
    const { code } = await failureOf(pending)
    expect(code).toBe('model-unauthorized')
    expect(spans().map(({ name, status, attributes }) => [name, status, attributes['error.type']])).toEqual(
      ['invoke_workflow Around', 'invoke_agent writer', 'chat model'].map(name => [
        name,
        { code: 2, message: code },
        code,
      ]),
    )
    expect(effectsInSpans(spans())).toEqual(await effectsOnRecord(store, pending.runId))
    expect(spans()[0]?.attributes['openrath.status']).toBe('failed')
  })

  it('of a forward that returns no session, and a cancel, are seen too', async () => {
    const { runtime, spans, clear } = await watched()
    class Wrong extends Workflow {
      forward() {
        return 'nothing' as never
      }
    }
    await failureOf(runtime.run(new Wrong(), ask()))
    expect(one(spans(), 'invoke_workflow Wrong').status).toEqual({ code: 2, message: 'invalid-argument' })
    clear()
    const { agent } = agentWith(() => new Promise<never>(() => {}))
    const pending = runtime.run(agent, ask())
    const model = new Promise<void>(resolve => {
      void (async () => {
        for await (const event of pending) if (event.type === 'run-start') resolve()
      })().catch(() => {})
    })
    await model
    pending.cancel()
    await failureOf(pending)
    expect(one(spans(), 'invoke_agent Agent')).toMatchObject({
      status: { code: 2, message: 'cancelled' },
      attributes: { 'openrath.status': 'cancelled' },
    })
  })

  it('is not what a run has that waits for a person', async () => {
    const { runtime, spans } = await watched()
    const asks = { ...echo, approval: () => true }
    const { agent } = agentWith([callsEcho('x'), 'done'], { tools: [asks] })
    const pending = runtime.run(agent, ask())
    const error = await failureOf(pending)
    expect(one(spans(), 'invoke_agent Agent')).toMatchObject({
      status: { code: 0 },
      attributes: { 'openrath.status': 'waiting' },
    })
    const [{ approval }] = error.data.approvals as never as [{ approval: string }]
    await runtime.decide(pending.runId, approval, { verdict: 'approved', by: 'ada' })
    await runtime.resume(pending.runId, agent)
    const [, again] = spans().filter(({ name }) => name === 'invoke_agent Agent')
    expect(again?.attributes).toMatchObject({ 'openrath.recorded': 1, 'openrath.status': 'done' })
    expect(spans().filter(({ name }) => name === 'chat model')).toHaveLength(2)
  })
})

describe('what is on record', () => {
  it('has no span in a replay: nobody was asked and nothing was run', async () => {
    const { runtime, spans, clear, metrics } = await watched()
    const { agent } = agentWith([calls('echo'), callsEcho('x'), 'done'], { tools: [echo] })
    const pending = runtime.run(agent, ask())
    await pending
    const tokens = async () => (await metrics())['gen_ai.client.token.usage']?.map(({ value }) => value)
    const spent = await tokens()
    expect(spent).toHaveLength(2)
    clear()
    expect(await runtime.replay(pending.runId, agent)).toMatchObject({ ok: true })
    expect(spans()).toHaveLength(1)
    expect(spans()[0]).toMatchObject({ name: 'invoke_agent Agent', attributes: { 'openrath.recorded': 4 } })
    expect(await tokens()).toEqual(spent)
  })

  it('has none when another run lends it, and what runs again has', async () => {
    const { runtime, spans, clear, store } = await watched()
    const { agent } = agentWith([callsEcho('x'), 'done', 'new'], { tools: [echo] })
    const first = runtime.run(agent, ask())
    await first
    clear()
    class Longer extends Workflow {
      async forward(session: Session) {
        return agent((await agent(session)).user('and now?'))
      }
    }
    const second = runtime.run(new Longer(), ask(), { reuse: first.runId })
    await second
    expect(effectsInSpans(spans())).toEqual(await effectsOnRecord(store, second.runId))
    expect(spans().map(({ name, attributes }) => [name, attributes['openrath.recorded']])).toEqual([
      ['invoke_workflow Longer', undefined],
      ['invoke_agent Agent', 3],
      ['invoke_agent Agent', undefined],
      ['chat model', undefined],
    ])
  })

  it('is compared with tools that run again, which have spans', async () => {
    const { runtime, spans, clear } = await watched()
    const { agent } = agentWith([callsEcho('x'), 'done'], { tools: [echo] })
    const pending = runtime.run(agent, ask())
    await pending
    clear()
    await runtime.replay(pending.runId, agent, { mode: 'tools' })
    expect(spans().map(({ name }) => name)).toEqual(['invoke_agent Agent', 'execute_tool echo'])
  })
})
