import { describe, expect, it } from 'vitest'
import { Workflow } from '../../src/flow/workflow.ts'
import { effect } from '../../src/run/forward.ts'
import type { Session } from '../../src/session/session.ts'
import { policy } from '../../src/tool/policy/policy.ts'
import { calls, counted, elsewhere, fresh, say } from './journal/make.ts'
import { agentWith, failureOf } from './make.ts'

const refused = { error: { status: 400 } }

describe('a resumed run', () => {
  it('is refused without the policy that it was begun with, and nothing is done', async () => {
    const { store, runtime } = await fresh()
    const remove = counted('remove', 'external')
    const tools = [remove.tool]
    const strict = policy({ deny: ['remove'] })
    const broken = runtime.run(agentWith([refused], { tools }).agent, say(), { policy: strict })
    await failureOf(broken)
    const { agent } = agentWith([calls('remove'), 'done'], { tools })
    const error = await failureOf(elsewhere(store).resume(broken.runId, agent))
    expect(error).toMatchObject({ code: 'invalid-argument', message: expect.stringContaining('{ policy }') })
    // @ts-expect-error its options are those of the agent
    await failureOf(elsewhere(store).resume(broken.runId, agent, { polcy: strict }))
    expect((await store.runs.get(broken.runId)).status).toBe('failed')
    const out = await elsewhere(store).resume(broken.runId, agent, { policy: strict })
    expect(out.text).toBe('done')
    expect(remove.counter.ran).toBe(0)
  })

  it('has the budget that it was begun with, what it spent before included, unless it is given another', async () => {
    const { store, runtime } = await fresh()
    const look = counted('look', 'pure')
    const tools = [look.tool]
    const script = [calls('look'), calls('look'), calls('look'), 'done']
    const broken = runtime.run(agentWith([calls('look'), refused], { tools }).agent, say(), {
      budget: { rounds: 3, cost: Infinity },
    })
    await failureOf(broken)
    const out = await elsewhere(store).resume(broken.runId, agentWith(script, { tools }).agent)
    expect(out.chunks.at(-1)).toMatchObject({ kind: 'error', error: 'budget-spent' })
    expect(look.counter.ran).toBe(3)
  })

  it.each([{}, { approveWithin: undefined }])(
    'limits its questions as it was begun with, given %o',
    async given => {
      const { store, runtime } = await fresh()
      const pay = counted('pay', 'external', { approval: true })
      const tools = [pay.tool]
      const broken = runtime.run(agentWith([refused], { tools }).agent, say(), { approveWithin: 60_000 })
      await failureOf(broken)
      const { agent } = agentWith([calls('pay')], { tools })
      const resumed = elsewhere(store).resume(broken.runId, agent, given as object)
      expect((await failureOf(resumed)).data.approvals).toMatchObject([{ until: expect.any(Number) }])
    },
  )

  it('goes on borrowing from the run that it was begun with', async () => {
    const { store, runtime } = await fresh()
    let published = 0
    class Report extends Workflow {
      readonly writer
      constructor(prompt: string, answer: string | typeof refused) {
        super()
        this.writer = agentWith([answer], { name: prompt }).agent
      }
      async forward(session: Session) {
        const out = await this.writer(session.fork(this.writer.name))
        await effect('publish', {}, () => published++)
        return out
      }
    }
    const first = runtime.run(new Report('one', 'Sales went up.'), say())
    await first
    const second = runtime.run(new Report('two', refused), say(), { reuse: first.runId })
    await failureOf(second)
    await elsewhere(store).resume(second.runId, new Report('two', 'They did.'))
    expect(published).toBe(1)
  })
})

it('a limit for questions that is none is refused by its value', async () => {
  const { runtime } = await fresh()
  const { agent } = agentWith(['done'])
  for (const approveWithin of [-1, Number.NaN, '5' as never])
    expect(() => runtime.run(agent, say(), { approveWithin })).toThrow('approveWithin is milliseconds from 0')
  expect((await runtime.run(agent, say(), { approveWithin: Infinity })).text).toBe('done')
})

describe('a resume that does not begin', () => {
  it('gives the run back, as it was, when its options are refused', async () => {
    const { store, runtime } = await fresh()
    const broken = runtime.run(agentWith([refused]).agent, say())
    await failureOf(broken)
    const { agent } = agentWith(['done'])
    const bad = runtime.resume(broken.runId, agent, { budget: { rounds: -1 } })
    expect((await failureOf(bad)).message).toContain('not -1')
    expect(await store.runs.get(broken.runId)).toMatchObject({ status: 'failed', owner: null })
    expect((await runtime.resume(broken.runId, agent)).text).toBe('done')
  })

  it('is told of when a function keeps the options to itself', async () => {
    const { store, runtime } = await fresh()
    const broken = runtime.run(agentWith([refused]).agent, say())
    await failureOf(broken)
    const { agent } = agentWith(['elsewhere', 'done'])
    const error = await failureOf(runtime.resume(broken.runId, session => runtime.run(agent, session)))
    expect(error.message).toContain(`did not go on with run ${broken.runId}`)
    expect(await store.runs.get(broken.runId)).toMatchObject({ status: 'failed', owner: null })
    expect((await runtime.resume(broken.runId, (session, options) => agent(session, options))).text).toBe(
      'done',
    )
  })
})

it('a failure is tried again also when something had to be reviewed first', async () => {
  const { runtime } = await fresh()
  const entered = Promise.withResolvers<void>()
  const send = counted('send', 'external', {
    run: () => {
      entered.resolve()
      return new Promise(() => {})
    },
  })
  class Both extends Workflow {
    readonly sender = agentWith([calls('send'), 'sent'], { tools: [send.tool] }).agent
    readonly writer = agentWith([refused, 'written']).agent
    async forward(session: Session) {
      const sending = this.sender(session.fork('sender'))
      await effect('entered', {}, () => entered.promise, { effect: 'read' })
      const [sent, written] = await Promise.all([sending, this.writer(session.fork('writer'))])
      return sent.merge(written)
    }
  }
  const both = new Both()
  const broken = runtime.run(both, say())
  expect((await failureOf(broken)).code).toBe('model-rejected')
  const { data } = await failureOf(runtime.resume(broken.runId, both))
  const [{ id }] = data.calls as unknown as [{ id: string }]
  await runtime.review(broken.runId, id, { happened: true })
  expect((await runtime.resume(broken.runId, both)).text).toBe('written')
})

it('an effect of a run whose input held a secret is not done again', async () => {
  const { runtime } = await fresh({ secrets: { PIN: 'hunter2hunter2' } })
  let charged = 0
  class Shop extends Workflow {
    readonly clerk = agentWith([refused, 'done']).agent
    async forward(session: Session) {
      await effect('charge', {}, () => charged++)
      return this.clerk(session)
    }
  }
  const shop = new Shop()
  const broken = runtime.run(shop, say('My PIN is hunter2hunter2.'))
  await failureOf(broken)
  await runtime.resume(broken.runId, shop)
  expect(charged).toBe(1)
})
