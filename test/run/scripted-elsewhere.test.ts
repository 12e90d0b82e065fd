import { describe, expect, it } from 'vitest'
import { Agent } from '../../src/flow/agent.ts'
import { Parallel } from '../../src/flow/containers.ts'
import { Workflow } from '../../src/flow/workflow.ts'
import type { Session } from '../../src/session/session.ts'
import { type Answer, type ScriptedModel, scripted } from '../../src/testing/scripted.ts'
import { counted, elsewhere, fresh, say } from './journal/make.ts'
import { failureOf } from './make.ts'

const pays = { toolCalls: [{ name: 'pay' }] }
const answers = (session: Session) =>
  session.chunks.flatMap(chunk => (chunk.kind === 'assistant' ? [chunk.text || 'pays'] : []))

/** A workflow as each process makes it: with a script of its own that has never been asked. */
function shop(
  make: (model: ScriptedModel, tools: readonly (typeof pay.tool)[]) => (session: Session) => Promise<Session>,
) {
  const pay = counted('pay', 'external', { approval: true })
  return { pay, load: (model: ScriptedModel) => make(model, [pay.tool]) as never }
}
const pay = counted('pay', 'external')

describe('a script that another process has begun', () => {
  const cashier = () => shop((model, tools) => new Agent('Pay.', { model, tools, builtins: false }) as never)

  async function decided(runtime: Awaited<ReturnType<typeof fresh>>['runtime'], run: string) {
    for (const { approval } of await runtime.approvals(run))
      await runtime.decide(run, approval, { verdict: 'approved', by: 'ada' })
  }

  it('goes on behind what is on record, and calls no tool twice', async () => {
    const { store, runtime } = await fresh()
    const { pay, load } = cashier()
    const script = () => scripted([pays, 'Paid.'])
    const pending = runtime.run(load(script()), say()) as unknown as { runId: string } & Promise<Session>
    await failureOf(pending)
    const there = elsewhere(store)
    await decided(there, pending.runId)
    const model = script()
    const out = await there.resume(pending.runId, load(model))
    expect([answers(out), pay.counter.ran, model.calls.length]).toEqual([['pays', 'Paid.'], 1, 1])
    model.done()
    const ids = out.chunks.flatMap(chunk => (chunk.kind === 'tool-result' ? [chunk.callId] : []))
    expect(ids).toEqual(['call-1'])
  })

  it('goes on in the process that began it too, however often it is resumed', async () => {
    const { runtime } = await fresh()
    const { pay, load } = cashier()
    const model = scripted([pays, pays, 'Paid twice.'])
    const agent = load(model)
    const pending = runtime.run(agent, say()) as unknown as { runId: string } & Promise<Session>
    await failureOf(pending)
    await failureOf(runtime.resume(pending.runId, agent))
    await decided(runtime, pending.runId)
    await failureOf(runtime.resume(pending.runId, agent))
    await decided(runtime, pending.runId)
    const out = await runtime.resume(pending.runId, agent)
    expect([answers(out), pay.counter.ran, model.calls.length]).toEqual([
      ['pays', 'pays', 'Paid twice.'],
      2,
      3,
    ])
  })

  it('is counted over all agents that share it: one after the other, a sub-agent, and branches', async () => {
    class Office extends Workflow {
      readonly first: Agent
      readonly boss: Agent
      constructor(model: ScriptedModel, tools: never) {
        super()
        this.first = new Agent('Greet.', { model, builtins: false })
        const clerk = new Agent('Pay.', { name: 'clerk', model, tools: [free.tool], builtins: false })
        const help = clerk.asTool({ name: 'help', description: 'Helps.' })
        this.boss = new Agent('Order.', { model, tools: [help, ...(tools as [])], builtins: false })
      }
      async forward(session: Session) {
        return this.boss(await this.first(session))
      }
    }
    const free = counted('free', 'external')
    const { store, runtime } = await fresh()
    const { pay, load } = shop((model, tools) => new Office(model, tools as never) as never)
    const script: Answer[] = [
      'Hello.',
      { toolCalls: [{ name: 'help', args: { request: 'go' } }] },
      { toolCalls: [{ name: 'free' }] },
      'The clerk is done.',
      pays,
      'All is done.',
    ]
    const pending = runtime.run(load(scripted(script)), say()) as unknown as {
      runId: string
    } & Promise<Session>
    await failureOf(pending)
    const there = elsewhere(store)
    await decided(there, pending.runId)
    const out = await there.resume(pending.runId, load(scripted(script)))
    expect([out.text, free.counter.ran, pay.counter.ran]).toEqual(['All is done.', 1, 1])
    const pair = shop((model, tools) => {
      const agent = () => new Agent('Pay.', { model, tools, builtins: false })
      return new Parallel({ a: agent(), b: agent() }) as never
    })
    const two = () => scripted([pays, pays, 'One.', 'Two.'])
    const both = runtime.run(pair.load(two()), say()) as unknown as { runId: string } & Promise<Session>
    await failureOf(both)
    await decided(there, both.runId)
    const joined = await there.resume(both.runId, pair.load(two()))
    expect([answers(joined).sort(), pair.pay.counter.ran]).toEqual([['One.', 'Two.', 'pays', 'pays'], 2])
  })

  it('may hold only what is left', async () => {
    const { store, runtime } = await fresh()
    const { pay, load } = cashier()
    const pending = runtime.run(load(scripted([pays])), say()) as unknown as {
      runId: string
    } & Promise<Session>
    await failureOf(pending)
    const there = elsewhere(store)
    await decided(there, pending.runId)
    const out = await there.resume(pending.runId, load(scripted(['Paid.'])))
    expect([out.text, pay.counter.ran]).toEqual(['Paid.', 1])
  })

  it('counts for a function, and fails loudly when it has no more to say', async () => {
    const { store, runtime } = await fresh()
    const { load } = cashier()
    const by = () => scripted((_, n) => [pays, 'Paid.'][n] as Answer)
    const pending = runtime.run(load(by()), say()) as unknown as { runId: string } & Promise<Session>
    await failureOf(pending)
    const there = elsewhere(store)
    await decided(there, pending.runId)
    const error = await failureOf(there.resume(pending.runId, load(scripted([pays]))))
    expect(error).toMatchObject({ code: 'script-mismatch', data: { asked: 2, answers: 1 } })
    expect(error.message).toContain('asked 2 times, 1 of them before this process,')
    expect((await there.resume(pending.runId, load(by()))).text).toBe('Paid.')
  })
})

describe('a session that goes on in another process, without a run', () => {
  const script = (): ScriptedModel => scripted(['Hello.', pays, 'Paid.', 'Bye.'])
  const agent = (model: ScriptedModel) => new Agent('Pay.', { model, tools: [pay.tool], builtins: false })

  it('goes on with what comes next, between turns and within one', async () => {
    const { runtime } = await fresh()
    const hello = await runtime.run(agent(script()), say())
    const paid = await runtime.run(agent(script()), hello.user('Pay.'))
    expect(answers(paid)).toEqual(['Hello.', 'pays', 'Paid.'])
    const cut = paid.rewind(paid.length - 2)
    expect(answers(await runtime.run(agent(script()), cut)).slice(-2)).toEqual(['pays', 'Paid.'])
    expect((await runtime.run(agent(script()), paid.user('Bye?'))).text).toBe('Bye.')
  })

  it('begins at the beginning on a session that was answered otherwise, or by all of it', async () => {
    const { runtime } = await fresh()
    const other = await runtime.run(agent(scripted(['Good day.'])), say())
    expect((await runtime.run(agent(script()), other.user('And you?'))).text).toBe('Hello.')
    const same = await runtime.run(agent(scripted(['Good day.'])), other.user('And you?'))
    expect(same.text).toBe('Good day.')
  })
})
