import { expect, it } from 'vitest'
import { Agent } from '../../src/flow/agent.ts'
import { Parallel, Sequential } from '../../src/flow/containers.ts'
import { type ScriptedModel, scripted } from '../../src/testing/scripted.ts'
import { calls, counted, fresh, say } from './journal/make.ts'
import { agentWith, failureOf } from './make.ts'

/** Ten agents: two, then six side by side, then two. Each has a model of its own that counts. */
function team(prompts: Record<number, string> = {}) {
  const models: ScriptedModel[] = []
  const agents = Array.from({ length: 10 }, (_, i) => {
    const model = scripted(() => `agent ${i} says ${prompts[i] ?? 'so'}`, { id: `model/${i}` })
    models.push(model)
    return new Agent(prompts[i] ?? `You are agent ${i}.`, { model, builtins: false, name: `a${i}` })
  })
  const side = new Parallel(Object.fromEntries(agents.slice(2, 8).map((agent, i) => [`b${i + 2}`, agent])))
  const workflow = new Sequential(...agents.slice(0, 2), side, ...agents.slice(8))
  const asked = () => models.flatMap((model, i) => model.calls.map(() => i))
  return { workflow, asked }
}

for (const [edited, paid] of [
  [9, [9]],
  [4, [4, 8, 9]],
  [1, [1, 2, 3, 4, 5, 6, 7, 8, 9]],
] as const) {
  it(`an edit to agent ${edited} of ten asks only those that come after it`, async () => {
    const { runtime } = await fresh()
    const first = runtime.run(team().workflow, say())
    await first
    const { workflow, asked } = team({ [edited]: 'You were edited.' })
    const second = runtime.run(workflow, say(), { reuse: first.runId })
    const out = await second
    expect(asked()).toEqual(paid)
    const report = await runtime.report(second.runId)
    expect(report).toMatchObject({
      reuse: first.runId,
      paid: { calls: paid.length },
      reused: { calls: 10 - paid.length },
      kinds: { model: { paid: { calls: paid.length } } },
    })
    expect(report.paid.tokens + report.reused.tokens).toBeGreaterThan(0)
    // The new run stands by itself.
    expect(await runtime.replay(second.runId, workflow)).toMatchObject({ ok: true, state: out.state })
  })
}

it('without an edit nothing is paid for, and tools do not run again', async () => {
  const { runtime } = await fresh()
  const pay = counted('pay', 'external')
  const worker = () => agentWith([calls('pay'), 'done'], { tools: [pay.tool] })
  const first = runtime.run(worker().agent, say())
  const again = worker()
  await first
  const second = runtime.run(again.agent, say(), { reuse: first.runId })
  expect((await second).state).toBe((await first).state)
  expect([pay.counter.ran, again.model.calls.length]).toEqual([1, 0])
  expect(await runtime.report(second.runId)).toMatchObject({ paid: { calls: 0 }, reused: { calls: 3 } })
})

it('another tool schema is asked with anew', async () => {
  const { runtime } = await fresh()
  const look = counted('look', 'read')
  const first = runtime.run(agentWith([calls('look'), 'done'], { tools: [look.tool] }).agent, say())
  await first
  const edited = { ...look.tool, description: 'Looks closely.' }
  const again = agentWith([calls('look'), 'done'], { tools: [edited] })
  await runtime.run(again.agent, say(), { reuse: first.runId })
  expect(again.model.calls).toHaveLength(2)
})

it('failures are not borrowed', async () => {
  const { runtime } = await fresh()
  const bad = runtime.run(agentWith([{ error: { status: 400 } }]).agent, say())
  await failureOf(bad)
  const good = agentWith(['done'])
  await runtime.run(good.agent, say(), { reuse: bad.runId })
  expect(good.model.calls).toHaveLength(1)
})

it('a decision is borrowed together with what came of it, and never by itself', async () => {
  const { runtime } = await fresh()
  const pay = counted('pay', 'external', { approval: true })
  const approve = () => ({ verdict: 'approved', by: 'ada' }) as const
  const first = runtime.run(agentWith([calls('pay'), 'done'], { tools: [pay.tool], approve }).agent, say())
  await first
  const later = agentWith([], { tools: [pay.tool] }).agent
  expect((await runtime.run(later, say(), { reuse: first.runId })).text).toBe('done')
  expect(pay.counter.ran).toBe(1)

  const waiting = runtime.run(agentWith([calls('pay')], { tools: [pay.tool] }).agent, say('go again'))
  const { data } = await failureOf(waiting)
  const [{ approval }] = data.approvals as unknown as [{ approval: string }]
  await runtime.decide(waiting.runId, approval, { verdict: 'approved', by: 'ada' })
  const borrowing = runtime.run(agentWith([], { tools: [pay.tool] }).agent, say('go again'), {
    reuse: waiting.runId,
  })
  expect((await failureOf(borrowing)).code).toBe('run-waiting')
  expect(pay.counter.ran).toBe(1)
})

it('a run to borrow from that does not exist is refused', async () => {
  const { runtime } = await fresh()
  const error = await failureOf(runtime.run(agentWith(['done']).agent, say(), { reuse: 'nothing' }))
  expect(error.code).toBe('unknown-run')
})

it('going on from a chunk of an old session is a branch beside it, which borrows what it can', async () => {
  const { runtime } = await fresh()
  const first = runtime.run(agentWith(['one']).agent, say())
  const out = await first
  const what = agentWith(['two'])
  const second = runtime.run(what.agent, out.rewind(0).user('and if not?'), { reuse: first.runId })
  expect((await second).text).toBe('two')
  expect(out.text).toBe('one')
})
