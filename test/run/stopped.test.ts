import { describe, expect, it } from 'vitest'
import { Compressor } from '../../src/flow/compressor.ts'
import { Parallel } from '../../src/flow/containers.ts'
import { Selector } from '../../src/flow/selector.ts'
import { Workflow } from '../../src/flow/workflow.ts'
import type { Session } from '../../src/session/session.ts'
import { scripted } from '../../src/testing/scripted.ts'
import { elsewhere, fresh } from './journal/make.ts'
import { agentWith, ask, callsEcho, echo, failureOf } from './make.ts'

const look = ({ stopped, text }: Session) => [stopped, text]

describe('a call that did not finish', () => {
  it('does not show the answer to the question before it, here or from another process', async () => {
    const { runtime, store } = await fresh()
    const { agent } = agentWith(['At six.', callsEcho('x'), callsEcho('y'), 'At seven.'], { tools: [echo] })
    const first = await runtime.run(agent, ask('When does it close?'))
    expect(look(first)).toEqual([undefined, 'At six.'])
    const pending = runtime.run(agent, first.user('And on Sunday?'), { budget: { rounds: 2 } })
    const cut = await pending
    expect(look(cut)).toEqual(['budget-spent', ''])
    const there = elsewhere(store)
    const kept = await there.sessions.get(cut.id)
    expect(look(kept)).toEqual(['budget-spent', ''])
    expect(look(await there.resume(pending.runId, agent))).toEqual(['budget-spent', ''])
    const report = await there.replay(pending.runId, agentWith([], { tools: [echo] }).agent)
    expect([report.ok, look(report.session as Session)]).toEqual([true, ['budget-spent', '']])
    expect(look(await there.run(agent, kept))).toEqual([undefined, 'At seven.'])
  })

  it('says max-rounds after maxRounds, and is not an answer to a chain of agents', async () => {
    const writer = agentWith(['A draft.']).agent
    const critic = agentWith([callsEcho('x')], { tools: [echo], maxRounds: 1 }).agent
    expect(look(await critic(writer(ask())))).toEqual(['max-rounds', ''])
  })

  it('is an error to the agent whose tool it is', async () => {
    const helper = agentWith([callsEcho('x')], { tools: [echo], maxRounds: 1, name: 'helper' }).agent
    const { agent } = agentWith([{ toolCalls: [{ name: 'help', args: { request: 'go' } }] }, 'done'], {
      tools: [helper.asTool({ name: 'help', description: 'Helps.' })],
    })
    const out = await agent(ask())
    expect(look(out)).toEqual([undefined, 'done'])
    expect(out.chunks.find(chunk => chunk.kind === 'tool-result')).toMatchObject({
      outcome: {
        kind: 'error',
        message: expect.stringContaining('help did not finish: The agent was stopped after 1'),
      },
    })
  })

  it('that failed says so on the session of its error', async () => {
    const { agent } = agentWith(['one', { error: { status: 400 } }])
    const error = await failureOf(agent((await agent(ask())).user('two?')))
    expect(look(error.session as Session)).toEqual(['model-rejected', ''])
  })

  it('of one branch is seen on the joined session', async () => {
    const cut = agentWith([callsEcho('x')], { tools: [echo], maxRounds: 1 }).agent
    const fine = agentWith(['fine']).agent
    expect(look(await new Parallel({ cut, fine })(ask()))).toEqual(['max-rounds', 'fine'])
    const judge = agentWith(['both']).agent
    const again = agentWith([callsEcho('x')], { tools: [echo], maxRounds: 1 }).agent
    expect(
      look(await new Parallel({ again, fine: agentWith(['fine']).agent }, { join: judge })(ask())),
    ).toEqual([undefined, 'both'])
  })
})

describe("onBudget: 'throw'", () => {
  it('throws what ended the call, with its session, which can be gone on from', async () => {
    const { runtime, store } = await fresh()
    const { agent } = agentWith([callsEcho('x'), 'done'], { tools: [echo] })
    const pending = runtime.run(agent, ask(), { budget: { rounds: 1 }, onBudget: 'throw' })
    const error = await failureOf(pending)
    expect(error).toMatchObject({ code: 'budget-spent', retry: 'after' })
    expect(look(error.session as Session)).toEqual(['budget-spent', ''])
    expect(await store.runs.get(pending.runId)).toMatchObject({
      status: 'failed',
      data: { onBudget: 'throw' },
    })
    expect(await runtime.replay(pending.runId, agentWith([], { tools: [echo] }).agent)).toMatchObject({
      ok: true,
      status: 'failed',
    })
    const same = await failureOf(
      elsewhere(store).resume(pending.runId, agentWith([], { tools: [echo] }).agent),
    )
    expect(same.code).toBe('budget-spent')
    const out = await elsewhere(store).resume(pending.runId, agent, { budget: { rounds: 5 } })
    expect(look(out)).toEqual([undefined, 'done'])
  })

  it('holds for maxRounds, as an option of an agent, and for everything inside a call', async () => {
    const options = { tools: [echo], maxRounds: 1, onBudget: 'throw' } as const
    expect(await failureOf(agentWith([callsEcho('x')], options).agent(ask()))).toMatchObject({
      code: 'max-rounds',
    })
    class Flow extends Workflow {
      agent = agentWith([callsEcho('x')], { tools: [echo], maxRounds: 1 }).agent
      forward(session: Session) {
        return this.agent(session)
      }
    }
    expect(await failureOf(new Flow()(ask(), { onBudget: 'throw' }))).toMatchObject({ code: 'max-rounds' })
    expect((await new Flow()(ask())).stopped).toBe('max-rounds')
    expect(() => new Flow()(ask(), { onBudget: 'scream' as never })).toThrow(
      "onBudget is 'return' or 'throw'",
    )
  })

  it('holds for compressors and selectors', async () => {
    const long = ask().append({ kind: 'assistant', text: 'a' }).user('b')
    const spent = { budget: { rounds: 0 }, onBudget: 'throw' } as const
    const compressor = new Compressor('Shorten.', { model: scripted([]) })
    expect(await failureOf(compressor(long, spent))).toMatchObject({ code: 'budget-spent' })
    const agent = agentWith(['x'], { description: 'answers' }).agent
    class Route extends Workflow {
      selector = new Selector({ model: scripted([]) })
      async forward(session: Session) {
        return (await this.selector(session, agent))(session)
      }
    }
    expect(await failureOf(new Route()(ask(), spent))).toMatchObject({ code: 'budget-spent' })
    expect(look(await new Route()(ask(), { budget: { rounds: 0 } }))).toEqual(['budget-spent', ''])
  })
})
