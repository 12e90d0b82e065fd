import { describe, expect, it } from 'vitest'
import { Agent } from '../../src/flow/agent.ts'
import { Compressor } from '../../src/flow/compressor.ts'
import { Selector } from '../../src/flow/selector.ts'
import { Workflow } from '../../src/flow/workflow.ts'
import { Provider } from '../../src/model/provider.ts'
import { Budget } from '../../src/run/budget.ts'
import type { ForwardContext } from '../../src/run/forward.ts'
import type { Session } from '../../src/session/session.ts'
import { fakeClock } from '../../src/testing/fake-clock.ts'
import { scripted } from '../../src/testing/scripted.ts'
import { tool } from '../../src/tool/tool.ts'
import { calls, counted, fresh } from './journal/make.ts'
import { agentWith, ask, callsEcho, echo, failureOf } from './make.ts'

const costly = (text: string) => ({ ...callsEcho(text), usage: { inputTokens: 100, outputTokens: 0 } })

describe('a budget', () => {
  it('of tokens stops the run with a readable chunk and the session so far', async () => {
    const { agent, model } = agentWith(() => costly('x'), { tools: [echo], budget: { tokens: 250 } })
    const out = await agent(ask())
    expect(model.calls).toHaveLength(3)
    expect(out.chunks.at(-1)).toMatchObject({ kind: 'error', error: 'budget-spent' })
    expect(out.chunks.at(-1)?.text).toContain('300 of 250 tokens')
    expect(out.pending).toEqual([])
  })

  it('of rounds counts failed attempts too', async () => {
    const { agent, model } = agentWith([{ error: { status: 500 } }, callsEcho('x'), 'never'], {
      tools: [echo],
      budget: { rounds: 2 },
    })
    const out = await agent(ask())
    expect(model.calls).toHaveLength(2)
    expect(out.chunks.at(-1)?.text).toContain('2 of 2 rounds')
  })

  it('of rounds ends attempts that go on failing, and has them on the record', async () => {
    const { agent, model } = agentWith(() => ({ error: { status: 500 } }), { budget: { rounds: 2 } })
    const out = await agent(ask())
    expect(model.calls).toHaveLength(2)
    expect(out.chunks.map(chunk => chunk.kind === 'error' && chunk.error)).toEqual([
      false,
      'model-overloaded',
      'model-overloaded',
      'budget-spent',
    ])
  })

  it('of rounds is not gone over by branches that ask at the same time', async () => {
    const { agent, model } = agentWith(() => 'x')
    class Fan extends Workflow {
      async forward(session: Session) {
        const [first, ...rest] = await Promise.all(session.forks(5).map(branch => agent(branch)))
        return (first as Session).merge(rest)
      }
    }
    const { runtime } = await fresh()
    const pending = runtime.run(new Fan(), ask(), { budget: { rounds: 2 } })
    const stops = (await pending).chunks.filter(chunk => chunk.kind === 'error')
    expect([model.calls.length, stops.length]).toEqual([2, 3])
    expect(await runtime.replay(pending.runId, new Fan())).toMatchObject({ ok: true, unasked: [] })
    expect(model.calls).toHaveLength(2)
  })

  it('of a month is not over at once', async () => {
    using clock = fakeClock()
    const { agent } = agentWith([{ text: 'late', delayMs: 1000 }], { budget: { time: 30 * 86_400_000 } })
    const pending = agent(ask())
    await clock.advance(1000)
    expect((await pending).text).toBe('late')
  })

  it('of time ends an answer that takes too long', async () => {
    const { agent } = agentWith([{ text: 'late', delayMs: 60_000 }], { budget: { time: 20 } })
    const out = await agent(ask())
    expect(out.chunks.at(-1)).toMatchObject({ kind: 'error', error: 'budget-spent' })
  })

  it('of time stops a tool too', async () => {
    const hang = tool({
      name: 'hang',
      description: '',
      input: { type: 'object' },
      run: () => new Promise(() => {}),
    })
    const { agent } = agentWith([{ toolCalls: [{ name: 'hang' }] }], { tools: [hang], budget: { time: 30 } })
    const out = await agent(ask())
    expect(out.pending).toEqual([])
    expect(out.chunks.at(-1)).toMatchObject({ kind: 'error', error: 'budget-spent' })
  })

  it('of time that was over is over in a resumed run too, and what followed is not done again', async () => {
    const { runtime } = await fresh()
    const hang = counted('hang', 'read', { run: () => new Promise(() => {}) })
    let published = 0
    class Report extends Workflow {
      readonly slow = agentWith([calls('hang'), 'never'], { tools: [hang.tool], budget: { time: 30 } }).agent
      readonly last = agentWith([{ error: { status: 400 } }, 'done']).agent
      async forward(session: Session, context: ForwardContext) {
        const out = await this.slow(session)
        await context.effect('publish', {}, () => published++, { session: out })
        return this.last(out)
      }
    }
    const report = new Report()
    const broken = runtime.run(report, ask())
    await failureOf(broken)
    expect((await runtime.resume(broken.runId, report)).text).toBe('done')
    expect(published).toBe(1)
  })

  it('of a run holds for all its branches together', async () => {
    const { agent, model } = agentWith(() => costly('x'), { tools: [echo] })
    class Fan extends Workflow {
      async forward(session: Session) {
        const [first, ...rest] = await Promise.all(session.forks(3).map(branch => agent(branch)))
        return (first as Session).merge(rest)
      }
    }
    await new Fan()(ask(), { budget: { tokens: 1000 } })
    expect(model.calls.length).toBeGreaterThanOrEqual(10)
    expect(model.calls.length).toBeLessThanOrEqual(12)
  })

  it('of tokens counts also what a model reports in part', () => {
    const budget = new Budget({ tokens: 3 })
    budget.addUsage({ inputTokens: 1, outputTokens: 2 })
    expect(budget.spent).toBe('3 of 3 tokens are spent')
  })

  it('with an unknown or negative limit is refused by name', () => {
    expect(() => new Budget({ token: 5 } as object)).toThrow('A budget has no "token"')
    expect(() => new Budget({ tokens: -1 })).toThrow('not -1')
  })
})

describe('a budget of dollars', () => {
  const priced = { text: 'x', usage: { inputTokens: 10, outputTokens: 0, cost: 3 } }

  it('ends a run where prices are known', async () => {
    const { agent } = agentWith([{ ...callsEcho('x'), usage: priced.usage }, 'never'], {
      tools: [echo],
      budget: { cost: 2 },
    })
    expect((await agent(ask())).chunks.at(-1)?.text).toContain('$3.0000 of $2 are spent')
  })

  it('refuses a model without a price at the first call and in compile, whoever asks it', async () => {
    class Flow extends Workflow {
      agent = agentWith(['never']).agent
      selector = new Selector({ model: scripted([]) })
      compressor = new Compressor('Shorten.', { model: scripted([]) })
      override get callOptions() {
        return { budget: { cost: 5 } }
      }
      forward(session: Session) {
        return this.agent(session)
      }
    }
    expect(new Flow().compile().validate()).toMatchObject(
      ['agent', 'selector', 'compressor'].map(path => ({ path, code: 'unknown-price' })),
    )
    expect(await failureOf(new Flow()(ask()))).toMatchObject({ code: 'unknown-price' })
    const under = { budget: { cost: 5 } }
    const { agent, model } = agentWith(['never'])
    const error = await failureOf(agent(ask(), under))
    expect(error.message).toContain("budget: { cost: { limit: 5, unknown: 'ignore' } }")
    const talk = ask().append({ kind: 'assistant', text: 'a' }).user('b')
    expect(await failureOf(new Compressor('Shorten.', { model: scripted([]) })(talk, under))).toMatchObject({
      code: 'unknown-price',
    })
    expect(model.calls).toHaveLength(0)
  })

  it('holds for the budget around it, the agent, and the provider, and lets be what it is told to', async () => {
    const own = agentWith(['never'], { budget: { cost: 1 } }).agent
    expect(await failureOf(own(ask()))).toMatchObject({ code: 'unknown-price' })
    const free = agentWith(['fine'], { budget: { cost: { limit: 1, unknown: 'ignore' } } }).agent
    expect(free.compile().validate()).toEqual([])
    expect((await free(ask())).text).toBe('fine')
    expect(await failureOf(free(ask(), { budget: { cost: 1 } }))).toMatchObject({ code: 'unknown-price' })
    expect((await agentWith(['fine']).agent(ask(), { budget: { cost: Infinity } })).text).toBe('fine')
    const mine = { id: 'mine/one', answer: async () => ({ content: [], finishReason: 'stop' as const }) }
    const provided = new Agent('', { model: mine, builtins: false, budget: { cost: 1 } })
    expect(provided.compile().validate()).toMatchObject([{ code: 'unknown-price' }])
    const says = new Agent('', { model: { ...mine, priced: true }, builtins: false, budget: { cost: 1 } })
    expect(says.compile().validate()).toEqual([])
    const local = { model: 'llama-4', baseURL: 'http://localhost:1', budget: { cost: 2 } }
    const unpriced = new Agent('', { provider: new Provider(local), builtins: false })
    expect(unpriced.compile().validate()).toMatchObject([{ code: 'unknown-price' }])
    const prices = { 'openai-compatible/llama-4': { input: 1, output: 1 } }
    const known = new Agent('', { provider: new Provider({ ...local, prices }), builtins: false })
    expect(known.compile().validate()).toEqual([])
  })

  it('is checked for its shape', () => {
    for (const cost of [-1, '5', { limit: -1 }, { limit: 5, unknown: 'skip' }, { limit: 5, maximum: 6 }])
      expect(() => new Budget({ cost: cost as never })).toThrow(
        "A budget's cost must be a number of at least 0 or {",
      )
  })

  it('is kept with the run, and a replay does not mind', async () => {
    const { runtime, store } = await fresh()
    const budget = { cost: { limit: 5, unknown: 'ignore' } } as const
    const { agent } = agentWith([callsEcho('x'), 'done'], { tools: [echo] })
    const pending = runtime.run(agent, ask(), { budget })
    await pending
    expect((await store.runs.get(pending.runId)).data).toMatchObject({ budget })
    const strict = agentWith([], { tools: [echo], budget: { cost: 1 } }).agent
    expect(await runtime.replay(pending.runId, strict)).toMatchObject({ ok: true })
  })
})
