import { describe, expect, it } from 'vitest'
import { Parallel } from '../../src/flow/containers.ts'
import { Workflow } from '../../src/flow/workflow.ts'
import type { RunEvent } from '../../src/run/event.ts'
import type { OpenApproval } from '../../src/run/run.ts'
import type { Session } from '../../src/session/session.ts'
import type { RunLog, RunWrite, Store } from '../../src/store/spec.ts'
import type { ApprovalRequest } from '../../src/tool/approval.ts'
import { tool } from '../../src/tool/tool.ts'
import { counted, elsewhere, fresh, say } from './journal/make.ts'
import { agentWith, failureOf, kinds } from './make.ts'

function shop() {
  const paid: number[] = []
  const pay = tool({
    name: 'pay',
    description: 'Pays.',
    input: { type: 'object', properties: { amount: { type: 'number' } }, required: ['amount'] },
    approval: true,
    run: ({ amount }: { amount: number }) => {
      paid.push(amount)
      return `paid ${amount}`
    },
  })
  return { pay, paid }
}
const pays = (...amounts: number[]) => ({
  toolCalls: amounts.map(amount => ({ name: 'pay', args: { amount } })),
})
const open = (error: { data: object }) => (error.data as { approvals: OpenApproval[] }).approvals

async function parked(options: { approveWithin?: number } = {}) {
  const { runtime, store } = await fresh()
  const { pay, paid } = shop()
  const look = counted('look', 'pure')
  const tools = [pay, look.tool]
  const turn = { toolCalls: [{ name: 'look' }, ...pays(50, 60).toolCalls] }
  const { agent } = agentWith([turn, 'done'], { tools, ...options })
  const pending = runtime.run(agent, say())
  const error = await failureOf(pending)
  const rest = () => agentWith(['done'], { tools, ...options }).agent
  return { store, runtime, error, run: pending.runId, paid, look: look.counter, rest }
}

describe('a call that needs approval, with nobody there', () => {
  it('parks the run: what was not asked about is done, the questions are open and kept', async () => {
    const { store, error, run, paid, look } = await parked()
    expect(error.code).toBe('run-waiting')
    expect(open(error)).toMatchObject([
      { tool: 'pay', args: { amount: 50 }, question: 'pay asks for approval.' },
      { tool: 'pay', args: { amount: 60 } },
    ])
    expect(await store.runs.get(run)).toMatchObject({
      status: 'waiting',
      owner: null,
      output: error.session.id,
    })
    expect(kinds(await store.sessions.get(error.session.id))).toEqual([
      ...['user', 'assistant', 'tool-result'],
      ...['approval', 'approval'],
    ])
    expect(error.session.pending.filter(({ kind }) => kind === 'approval')).toHaveLength(2)
    expect([paid, look.ran]).toEqual([[], 1])
  })

  it('tells another process which questions are open, and no longer those that were answered', async () => {
    const { store, error, run } = await parked()
    const there = elsewhere(store)
    const [first, second] = open(error) as [OpenApproval, OpenApproval]
    expect(await there.approvals(run)).toEqual([first, second])
    await there.decide(run, first.approval, { verdict: 'approved', by: 'ada' })
    expect(await there.approvals(run)).toEqual([second])
    await expect(there.approvals('nowhere')).rejects.toMatchObject({ code: 'unknown-run' })
  })

  it('waits for all questions of the turn to be kept, however long the store takes for one', async () => {
    const { store } = await fresh()
    const isSlow = (write: RunWrite) =>
      write.kind === 'intend' && JSON.stringify(write).includes('"amount":60')
    const slow = (log: RunLog): RunLog => ({
      ...log,
      append: async writes => {
        for (let turns = 0; turns < 20 && writes.some(isSlow); turns++) await new Promise(setImmediate)
        await log.append(writes)
      },
    })
    const runs: Store['runs'] = { ...store.runs, begin: (...args) => slow(store.runs.begin(...args)) }
    const { pay } = shop()
    const { agent } = agentWith([pays(50, 60)], { tools: [pay] })
    const error = await failureOf(elsewhere({ ...store, runs }).run(agent, say()))
    expect(open(error)).toHaveLength(2)
    expect(kinds(error.session)).toEqual(['user', 'assistant', 'approval', 'approval'])
  })

  it('goes on when another process has decided: approved, edited, rejected or answered', async () => {
    const { store, error, run, paid, look, rest } = await parked()
    const [first, second] = open(error) as [OpenApproval, OpenApproval]
    const other = elsewhere(store)
    await other.decide(run, first.approval, {
      verdict: 'edited',
      by: 'ada',
      edit: { amount: 5 },
      digest: first.digest,
    })
    const still = await failureOf(other.resume(run, rest()))
    expect(open(still).map(({ approval }) => approval)).toEqual([second.approval])
    expect(paid).toEqual([5])
    await other.decide(run, second.approval, { verdict: 'rejected', by: 'ada', reason: 'too much' })
    const out = await other.resume(run, rest())
    expect([paid, look.ran]).toEqual([[5], 1])
    const outcomes = out.chunks.flatMap(chunk => (chunk.kind === 'tool-result' ? [chunk.outcome] : []))
    expect(outcomes).toMatchObject([{}, { value: 'paid 5' }, { kind: 'denied', reason: 'too much' }])
    const decided = out.chunks.filter(chunk => chunk.kind === 'approval' && chunk.verdict !== undefined)
    expect(decided).toMatchObject([
      { verdict: 'edited', decidedBy: 'ada', args: { amount: 5 } },
      { verdict: 'rejected', decidedBy: 'ada', reason: 'too much' },
    ])
    expect(await other.replay(run, rest())).toMatchObject({ ok: true, state: out.state })
    expect(paid).toEqual([5])
  })

  it('takes an answer for the result, and does not run', async () => {
    const { runtime, error, run, paid, rest } = await parked()
    for (const { approval } of open(error))
      await runtime.decide(run, approval, { verdict: 'answered', by: 'ada', answer: { receipt: 7 } })
    const out = await runtime.resume(run, rest())
    expect(paid).toEqual([])
    expect(out.chunks.at(-2)).toMatchObject({ outcome: { kind: 'value', value: { receipt: 7 } } })
  })

  it('refuses a decision about other arguments, a second one, and one about nothing', async () => {
    const { runtime, error, run } = await parked()
    const [{ approval }] = open(error) as [OpenApproval]
    const decision = { verdict: 'approved', by: 'ada' } as const
    await expect(runtime.decide(run, approval, { ...decision, digest: 'other' })).rejects.toThrow(
      'other arguments',
    )
    await expect(runtime.decide(run, approval, { ...decision, verdict: 'edited' })).rejects.toThrow(
      'has no edit',
    )
    await runtime.decide(run, approval, decision)
    await expect(runtime.decide(run, approval, decision)).rejects.toThrow('decided already')
    await expect(runtime.decide(run, 'nothing', decision)).rejects.toThrow('was never asked')
  })

  it('expires: nobody can decide any more, and the run goes on without it', async () => {
    const { runtime, error, run, paid, rest } = await parked({ approveWithin: 250 })
    const [{ approval }, ...others] = open(error) as [OpenApproval, ...OpenApproval[]]
    const last = Math.max(...open(error).map(({ until }) => until as number))
    expect(others).toHaveLength(1)
    while (Date.now() <= last) await new Promise(resolve => setImmediate(resolve))
    const late = await failureOf(runtime.decide(run, approval, { verdict: 'approved', by: 'ada' }))
    expect(late.code).toBe('unknown-approval')
    expect(await runtime.approvals(run)).toEqual([])
    const out = await runtime.resume(run, rest())
    expect(paid).toEqual([])
    expect(out.chunks.filter(chunk => chunk.kind === 'approval' && chunk.verdict === 'expired')).toHaveLength(
      2,
    )
  })
})

describe('a handler', () => {
  it('decides at once, and its decision is on record: a replay does not ask', async () => {
    const { runtime } = await fresh()
    const { pay, paid } = shop()
    const asked: ApprovalRequest[] = []
    const { agent } = agentWith([pays(50), 'done'], {
      tools: [pay],
      approve: request => {
        asked.push(request)
        return { verdict: 'approved', by: 'ada' }
      },
    })
    const pending = runtime.run(agent, say())
    await pending
    expect(await runtime.replay(pending.runId, agent)).toMatchObject({ ok: true })
    expect([asked.length, paid]).toEqual([1, [50]])
  })
})

describe('a handler that never answers', () => {
  it('leaves no timer behind when the run is cancelled', async () => {
    const timers = () => process.getActiveResourcesInfo().filter(name => name === 'Timeout').length
    const { runtime } = await fresh()
    const asked = Promise.withResolvers<void>()
    const { agent } = agentWith([pays(50), 'done'], {
      tools: [shop().pay],
      approveWithin: 1_000_000,
      approve: () => {
        asked.resolve()
        return new Promise(() => {})
      },
    })
    const before = timers()
    const pending = runtime.run(agent, say())
    await asked.promise
    pending.cancel()
    expect((await failureOf(pending)).code).toBe('cancelled')
    await runtime.close()
    expect(timers()).toBeLessThanOrEqual(before)
  })
})

describe('a branch that waits', () => {
  it('lets the others finish, and all questions of the run are told at once', async () => {
    const { runtime } = await fresh()
    const { pay, paid } = shop()
    const waits = agentWith([pays(1)], { tools: [pay] }).agent
    const slow = agentWith([{ text: 'slow', delayMs: 5 }])
    const also = agentWith([pays(2)], { tools: [pay] }).agent
    const team = new Parallel({ waits, slow: slow.agent, also })
    const pending = runtime.run(team, say())
    const error = await failureOf(pending)
    expect(open(error).map(({ args }) => args)).toEqual([{ amount: 1 }, { amount: 2 }])
    for (const { approval } of open(error))
      await runtime.decide(pending.runId, approval, { verdict: 'approved', by: 'ada' })
    const rest = () => agentWith(['done'], { tools: [pay] }).agent
    const resumed = new Parallel({ waits: rest(), slow: agentWith([]).agent, also: rest() })
    await runtime.resume(pending.runId, resumed)
    expect(paid.sort()).toEqual([1, 2])
    expect(slow.model.calls).toHaveLength(1)
  })

  it('parks the run also from inside an agent that is a tool', async () => {
    const { runtime } = await fresh()
    const { pay, paid } = shop()
    const clerk = agentWith([pays(3), 'bought'], { tools: [pay], name: 'clerk' }).agent
    const { agent } = agentWith([{ toolCalls: [{ name: 'buy', args: { request: 'a pen' } }] }, 'done'], {
      tools: [clerk.asTool({ name: 'buy', description: 'Buys.' })],
    })
    const pending = runtime.run(agent, say())
    const error = await failureOf(pending)
    expect(open(error)).toMatchObject([{ args: { amount: 3 } }])
    await runtime.decide(pending.runId, open(error)[0]?.approval as string, {
      verdict: 'approved',
      by: 'ada',
    })
    expect((await runtime.resume(pending.runId, agent)).text).toBe('done')
    expect(paid).toEqual([3])
  })

  it('in a hook is not waited for when another branch was first', async () => {
    const { runtime, store } = await fresh()
    const asks = agentWith([pays(1)], { tools: [shop().pay] }).agent
    const hooked = agentWith(['hm']).agent
    hooked.onForward((_workflow, _session, result) => asks(result))
    const { promise: asked, resolve } = Promise.withResolvers<void>()
    const other = async (session: Session) => {
      await asked
      return session
    }
    const onEvent = (event: RunEvent) => {
      if (event.type === 'run-end' && event.by.endsWith('/hooked')) resolve()
    }
    const pending = runtime.run(new Parallel({ hooked, other }, { join: 'first' }), say(), { onEvent })
    expect((await pending).pending).toEqual([])
    expect((await store.runs.get(pending.runId)).status).toBe('done')
  })

  it('is still waiting when the code around it takes the error for a failure', async () => {
    const { runtime, store } = await fresh()
    const { pay } = shop()
    class Swallowing extends Workflow {
      agent = agentWith([pays(1)], { tools: [pay] }).agent
      forward(session: Session) {
        return this.agent(session).catch(() => session)
      }
    }
    const pending = runtime.run(new Swallowing(), say())
    expect((await failureOf(pending)).code).toBe('run-waiting')
    expect((await store.runs.get(pending.runId)).status).toBe('waiting')
  })
})

it('a decision that comes while a handler is asked stands, and the run goes on with it', async () => {
  const { runtime, store } = await fresh()
  const { pay, paid } = shop()
  const { agent } = agentWith([pays(50), 'done'], { tools: [pay] })
  const pending = runtime.run(agent, say(), {
    approve: async ({ approval }) => {
      await elsewhere(store).decide(pending.runId, approval, { verdict: 'rejected', by: 'ada' })
      return { verdict: 'approved', by: 'late' }
    },
  })
  const out = await pending
  const decided = out.chunks.flatMap(chunk => (chunk.kind === 'approval' ? [chunk.decidedBy] : []))
  expect(decided).toEqual([undefined, 'ada'])
  expect(paid).toEqual([])
  expect(await runtime.replay(pending.runId, agent)).toMatchObject({ ok: true })
})

it('a decision that could not be put on the record is refused, and the question stays open', async () => {
  const { runtime, run, error, rest } = await parked()
  const [{ approval }] = open(error) as [OpenApproval]
  const odd = [{ by: 42 }, { by: '' }, { reason: ['no'] }, { at: 'now' }]
  for (const wrong of odd) {
    const decision = { verdict: 'rejected', ...wrong } as never
    expect((await failureOf(runtime.decide(run, approval, decision))).code).toBe('invalid-argument')
  }
  expect((await failureOf(runtime.decide(run, approval, null as never))).code).toBe('invalid-argument')
  for (const { approval } of open(error))
    await runtime.decide(run, approval, { verdict: 'rejected', by: 'ada', reason: 'no' })
  expect((await runtime.resume(run, rest())).text).toBe('done')
})

describe('a question of a call that was cancelled', () => {
  async function cancelled() {
    const { runtime, store } = await fresh()
    const { pay, paid } = shop()
    const asked = Promise.withResolvers<string>()
    const approve = ({ approval }: ApprovalRequest) => {
      asked.resolve(approval)
      return new Promise<never>(() => {})
    }
    const { agent } = agentWith([pays(50), 'done'], { tools: [pay] })
    const pending = runtime.run(agent, say(), { approve })
    const approval = await asked.promise
    pending.cancel()
    return { runtime, store, pay, paid, approval, run: pending.runId, error: await failureOf(pending) }
  }

  it('is open nowhere: not on the session, not on one continued from there, not in the run', async () => {
    const { store, error, run, approval, pay } = await cancelled()
    expect(error.code).toBe('cancelled')
    expect(error.session.pending).toEqual([])
    const there = elsewhere(store)
    expect(await there.approvals(run)).toEqual([])
    const late = await failureOf(there.decide(run, approval, { verdict: 'approved', by: 'ada' }))
    expect(late).toMatchObject({
      code: 'unknown-approval',
      message: expect.stringContaining('the run is cancelled'),
    })
    const on = await there.run(agentWith(['fine'], { tools: [pay] }).agent, error.session.user('Never mind.'))
    expect([on.text, on.pending]).toEqual(['fine', []])
    expect((await there.sessions.get(on.id)).pending).toEqual([])
  })

  it('is asked again when the run is resumed', async () => {
    const { runtime, run, paid, approval, pay } = await cancelled()
    const rest = () => agentWith(['done'], { tools: [pay] }).agent
    expect(open(await failureOf(runtime.resume(run, rest())))).toMatchObject([{ approval }])
    expect(await runtime.approvals(run)).toMatchObject([{ approval }])
    await runtime.decide(run, approval, { verdict: 'approved', by: 'ada' })
    expect((await runtime.resume(run, rest())).text).toBe('done')
    expect(paid).toEqual([50])
  })

  it('is not listed beside one that the run does wait for', async () => {
    const { runtime } = await fresh()
    const { pay } = shop()
    const asks = agentWith([pays(1)], { tools: [pay] }).agent
    const asked = Promise.withResolvers<void>()
    const quick = async (session: Session) => {
      await asked.promise
      return session
    }
    const race = new Parallel({ asks, quick }, { join: 'first' })
    const then = agentWith([pays(2)], { tools: [pay] }).agent
    class Both extends Workflow {
      race = race
      next = then
      async forward(session: Session) {
        return this.next(await this.race(session))
      }
    }
    const onEvent = (event: RunEvent) => {
      if (event.type === 'run-end' && event.by.endsWith('/asks')) asked.resolve()
    }
    const pending = runtime.run(new Both(), say(), { onEvent })
    expect(open(await failureOf(pending)).map(({ args }) => args)).toEqual([{ amount: 2 }])
    expect((await runtime.approvals(pending.runId)).map(({ args }) => args)).toEqual([{ amount: 2 }])
  })
})

describe('an edit that does not fit the tool', () => {
  it('is refused where it is decided, from any process, and the question stays open', async () => {
    const { store, run, error, paid, rest } = await parked()
    const [first, second] = open(error) as [OpenApproval, OpenApproval]
    const there = elsewhere(store)
    for (const edit of [{ amount: 'five' }, {}, 5, null]) {
      const decision = { verdict: 'edited', by: 'ada', edit } as const
      const refused = await failureOf(there.decide(run, first.approval, decision))
      expect(refused.code).toBe('invalid-argument')
      expect(refused.message).toContain('does not fit pay, and nothing was decided')
    }
    expect(await there.approvals(run)).toEqual([first, second])
    await there.decide(run, first.approval, { verdict: 'edited', by: 'ada', edit: { amount: 5 } })
    await there.decide(run, second.approval, { verdict: 'rejected', by: 'ada' })
    await there.resume(run, rest())
    expect(paid).toEqual([5])
  })

  it('is refused when a handler gives it, and is not on record: a resumed run asks again', async () => {
    const { runtime } = await fresh()
    const { pay, paid } = shop()
    const { agent } = agentWith([pays(50), 'done'], { tools: [pay] })
    const pending = runtime.run(agent, say(), {
      approve: () => ({ verdict: 'edited', by: 'ada', edit: { amount: 'five' } }),
    })
    const error = await failureOf(pending)
    expect(error).toMatchObject({
      code: 'invalid-argument',
      message: expect.stringContaining('arguments.amount'),
    })
    await runtime.resume(pending.runId, agent, {
      approve: () => ({ verdict: 'edited', by: 'ada', edit: { amount: 5 } }),
    })
    expect(paid).toEqual([5])
  })
})

it('events tell of a call with the arguments that it runs with', async () => {
  const { runtime } = await fresh()
  const { agent } = agentWith([pays(50), 'done'], { tools: [shop().pay] })
  const told: unknown[] = []
  await runtime.run(agent, say(), {
    approve: () => ({ verdict: 'edited', by: 'ada', edit: { amount: 5 } }),
    onEvent: event => {
      if (event.type === 'approval-request') told.push(event.args)
      if (event.type === 'tool-call') told.push(event.call.args)
    },
  })
  expect(told).toEqual([{ amount: 50 }, { amount: 5 }])
})

it('while a call is parked, the calls finish that need not come after it, and none runs again', async () => {
  const { runtime } = await fresh()
  const { pay, paid } = shop()
  const [before, sum, mail] = [
    counted('before', 'external'),
    counted('sum', 'pure'),
    counted('mail', 'external'),
  ]
  const other = counted('other', 'external', { resource: () => 'other' })
  const onBank = { ...pay, resource: () => 'bank' }
  const tools = [before.tool, sum.tool, mail.tool, other.tool]
  const turn = (...names: string[]) => ({
    toolCalls: names.map(name => ({ name, args: name === 'pay' ? { amount: 5 } : {} })),
  })
  const ran = () => [before, sum, other, mail].map(({ counter }) => counter.ran)
  const finish = async (names: string[], given: typeof pay) => {
    const agent = () => agentWith([turn(...names), 'done'], { tools: [given, ...tools] }).agent
    const pending = runtime.run(agent(), say())
    const error = await failureOf(pending)
    const whileParked = ran()
    for (const { approval } of open(error))
      await runtime.decide(pending.runId, approval, { verdict: 'approved', by: 'ada' })
    const rest = agentWith(['done'], { tools: [given, ...tools] }).agent
    expect((await runtime.resume(pending.runId, rest)).text).toBe('done')
    return whileParked
  }
  // Alone: what comes behind it waits, unless it can neither see nor change anything.
  expect(await finish(['before', 'pay', 'sum', 'other', 'mail', 'nothing'], pay)).toEqual([1, 1, 0, 0])
  expect([ran(), paid]).toEqual([[1, 1, 1, 1], [5]])
  // On a resource of its own: what works on another goes on.
  expect(await finish(['pay', 'other'], onBank)).toEqual([1, 1, 2, 1])
  expect([ran(), paid]).toEqual([
    [1, 1, 2, 1],
    [5, 5],
  ])
})
