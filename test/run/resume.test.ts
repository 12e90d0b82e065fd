import { describe, expect, it, vi } from 'vitest'
import type { RathError } from '../../src/base/errors.ts'
import { Workflow } from '../../src/flow/workflow.ts'
import { effect } from '../../src/run/forward.ts'
import { Journal } from '../../src/run/journal.ts'
import type { Session } from '../../src/session/session.ts'
import type { Tool } from '../../src/tool/spec.ts'
import { calls, counted, elsewhere, fresh, kindsOf, say } from './journal/make.ts'
import { mortal, release } from './journal/mortal.ts'
import { agentWith, callsEcho, echo, failureOf, kinds } from './make.ts'

/** A run that dies inside a tool of this effect. */
async function dying(effect: Tool['effect']) {
  const { store } = await fresh()
  const { state, view } = mortal(store)
  const entered = Promise.withResolvers<void>()
  const touch = counted('touch', effect)
  const dies = {
    ...touch.tool,
    run: () => {
      touch.counter.ran++
      state.dead = true
      entered.resolve()
      return new Promise(() => {})
    },
  }
  const before = counted('before', 'external')
  const tools = [before.tool, touch.tool]
  const script = () => [calls('before'), calls('touch'), 'done']
  const first = agentWith(script(), { tools: [before.tool, dies] })
  const pending = elsewhere(view).run(first.agent, say())
  await entered.promise
  await release(store, pending.runId)
  const second = agentWith(script().slice(2), { tools })
  return { store, run: pending.runId, touch: touch.counter, before: before.counter, ...second }
}

describe('a run that was cut off', () => {
  for (const effect of ['pure', 'read', 'idempotent', 'workspace'] as const) {
    it(`goes on: what was done is not done again, and an unfinished ${effect} tool runs again`, async () => {
      const { store, run, touch, before, agent, model } = await dying(effect)
      const out = await elsewhere(store).resume(run, agent)
      expect(out.text).toBe('done')
      expect(before.ran).toBe(1)
      expect(touch.ran).toBe(2)
      // The answers before the end came from the record.
      expect(model.calls).toHaveLength(1)
      expect(await store.runs.get(run)).toMatchObject({ status: 'done', output: out.id })
      expect(await kindsOf(store, run)).toEqual(['model', 'tool', 'model', 'tool', 'model'])
    })
  }

  it('stops in needs-review when something external may have happened', async () => {
    const { store, run, touch, agent } = await dying('external')
    const runtime = elsewhere(store)
    const error = await failureOf(runtime.resume(run, agent))
    expect(error.code).toBe('needs-review')
    expect(error.data.calls).toMatchObject([{ id: 'call-2', kind: 'tool', request: { tool: 'touch' } }])
    expect(await store.runs.get(run)).toMatchObject({ status: 'needs-review', owner: null })
    expect(touch.ran).toBe(1)
    expect((await failureOf(runtime.resume(run, agent))).code).toBe('needs-review')
  })

  it('tells another process what it was cut off in, until somebody has said whether it happened', async () => {
    const { store, run, agent } = await dying('external')
    const there = elsewhere(store)
    expect(await there.unfinished(run)).toEqual([])
    const { data } = await failureOf(elsewhere(store).resume(run, agent))
    const [call] = await there.unfinished(run)
    expect([call]).toEqual(data.calls)
    await there.review(run, call?.id ?? '', { happened: false })
    expect(await there.unfinished(run)).toEqual([])
  })

  it('takes the word of a reviewer that it happened, and does not do it again', async () => {
    const { store, run, touch, agent } = await dying('external')
    const runtime = elsewhere(store)
    await failureOf(runtime.resume(run, agent))
    await runtime.review(run, 'call-2', { happened: true, result: 'it was done', by: 'ada' })
    const out = await runtime.resume(run, agent)
    expect(touch.ran).toBe(1)
    const results = out.chunks.flatMap(chunk => (chunk.kind === 'tool-result' ? [chunk.outcome] : []))
    expect(results[1]).toEqual({ kind: 'value', value: 'it was done' })
    expect(await runtime.replay(run, agent)).toMatchObject({ ok: true })
  })

  it('does it once more when a reviewer says that it did not happen, and asks again after another crash', async () => {
    const { store, run, touch, agent } = await dying('external')
    const runtime = elsewhere(store)
    await failureOf(runtime.resume(run, agent))
    await runtime.review(run, 'call-2', { happened: false })
    const { state, view } = mortal(store)
    const again = agentWith([], {
      tools: [
        counted('before', 'external').tool,
        {
          ...counted('touch', 'external').tool,
          run: () => {
            state.dead = true
            return new Promise(() => {})
          },
        },
      ],
    })
    void elsewhere(view)
      .resume(run, again.agent)
      .catch(() => {})
    while (!state.dead) await new Promise(resolve => setImmediate(resolve))
    await release(store, run)
    expect((await failureOf(runtime.resume(run, agent))).code).toBe('needs-review')
    await runtime.review(run, 'call-2', { happened: false })
    expect((await runtime.resume(run, agent)).text).toBe('done')
    expect(touch.ran).toBe(2)
  })

  it('is told so when a review names nothing that waits for one', async () => {
    const { store, run, agent } = await dying('external')
    const runtime = elsewhere(store)
    await failureOf(runtime.resume(run, agent))
    await expect(runtime.review(run, 'nothing', { happened: true })).rejects.toThrow('there are: call-2')
  })
})

describe('an agent inside a tool', () => {
  it('that asks the same in two turns is not given the first answer for the second', async () => {
    const { store } = await fresh()
    const { state, view } = mortal(store)
    const helper = (answers: (n: number) => string | Promise<string>) => {
      const { agent } = agentWith((_request, n) => answers(n), { name: 'helper' })
      return agent.asTool({ name: 'help', description: 'Helps.' })
    }
    const helps = { toolCalls: [{ name: 'help', args: { request: 'the same' } }] }
    const dies = helper(n => {
      if (n === 0) return 'first'
      state.dead = true
      return new Promise(() => {})
    })
    const pending = elsewhere(view).run(agentWith([helps, helps], { tools: [dies] }).agent, say())
    while (!state.dead) await new Promise(resolve => setImmediate(resolve))
    await release(store, pending.runId)
    const rest = agentWith(['done'], { tools: [helper(() => 'second')] })
    const out = await elsewhere(store).resume(pending.runId, rest.agent)
    const said = out.chunks.flatMap(chunk => (chunk.kind === 'tool-result' ? [chunk.outcome] : []))
    expect(said).toMatchObject([{ value: 'first' }, { value: 'second' }])
  })
})

describe('a run that failed', () => {
  it('gets further when it is resumed: what failed is tried again, what went well is not', async () => {
    const { runtime, store } = await fresh()
    const bad = agentWith([callsEcho('x'), { error: { status: 400 } }], { tools: [echo] })
    const pending = runtime.run(bad.agent, say())
    expect((await failureOf(pending)).code).toBe('model-rejected')
    const good = agentWith(['done'], { tools: [echo] })
    const out = await runtime.resume(pending.runId, good.agent)
    expect(good.model.calls).toHaveLength(1)
    expect(kinds(out)).toEqual(['user', 'assistant', 'tool-result', 'assistant'])
    expect((await store.runs.get(pending.runId)).status).toBe('done')
    // The record now holds both outcomes of that call, and a replay takes the last.
    expect(await runtime.replay(pending.runId, good.agent)).toMatchObject({ ok: true, state: out.state })
  })

  it('counts what is on record as spent', async () => {
    const { runtime } = await fresh()
    const options = { tools: [echo], budget: { rounds: 2 } }
    const bad = agentWith([callsEcho('x'), { error: { status: 400 } }], options)
    const pending = runtime.run(bad.agent, say())
    await failureOf(pending)
    const again = agentWith([callsEcho('y'), 'never asked'], options)
    const out = await runtime.resume(pending.runId, again.agent)
    expect(out.chunks.at(-1)).toMatchObject({ error: 'budget-spent' })
    expect(again.model.calls).toHaveLength(1)
  })

  it('may fail again, any number of times', async () => {
    const { runtime } = await fresh()
    const bad = () => agentWith([{ error: { status: 400 } }]).agent
    const pending = runtime.run(bad(), say())
    await failureOf(pending)
    for (let i = 0; i < 3; i++) await failureOf(runtime.resume(pending.runId, bad()))
    expect((await runtime.resume(pending.runId, agentWith(['done']).agent)).text).toBe('done')
  })

  it('does not try again what the code had dealt with when it was only cut off', async () => {
    const { store } = await fresh()
    const { state, view } = mortal(store)
    const log: string[] = []
    class Careful extends Workflow {
      async forward(session: Session) {
        const first = await effect('shaky', {}, () => {
          log.push('shaky')
          throw new Error('down')
        }).catch((error: Error) => error.message)
        return effect(
          'steady',
          { first },
          () => {
            log.push('steady')
            if (log.length === 2) {
              state.dead = true
              return new Promise<string>(() => {})
            }
            return 'fine'
          },
          { effect: 'idempotent' },
        ).then(text => session.user(text))
      }
    }
    const pending = elsewhere(view).run(new Careful(), say())
    while (!state.dead) await new Promise(resolve => setImmediate(resolve))
    await release(store, pending.runId)
    await elsewhere(store).resume(pending.runId, new Careful())
    expect(log).toEqual(['shaky', 'steady', 'steady'])
  })
})

describe('a run that is done', () => {
  it('gives its session, and does nothing', async () => {
    const { runtime } = await fresh()
    const pending = runtime.run(agentWith(['done']).agent, say())
    const out = await pending
    const again = agentWith([])
    expect((await runtime.resume(pending.runId, again.agent)).id).toBe(out.id)
  })
})

describe('one driver at a time', () => {
  it('a second one is told who drives the run, and until when', async () => {
    const { runtime, store } = await fresh()
    const started = Promise.withResolvers<void>()
    const finish = Promise.withResolvers<string>()
    const { agent } = agentWith(() => {
      started.resolve()
      return finish.promise
    })
    const pending = runtime.run(agent, say())
    await started.promise
    const { owner, leaseUntil } = await store.runs.get(pending.runId)
    const error = await failureOf(elsewhere(store).resume(pending.runId, agent))
    expect(error.code).toBe('run-owned')
    expect(error.data).toMatchObject({ owner, leaseUntil })
    finish.resolve('done')
    await pending
  })

  it('a run whose lease was lost stops before its next effect, and writes nothing', async () => {
    const { runtime, store } = await fresh()
    let run = ''
    const { agent, model } = agentWith(
      async (_request, n) => {
        if (n === 0)
          await store.runs.claim(run, 'thief', 60_000, {
            instead: (await store.runs.get(run)).owner as string,
          })
        return n === 0 ? calls('pay') : 'done'
      },
      { tools: [counted('pay', 'external').tool] },
    )
    const pending = runtime.run(agent, say())
    run = pending.runId
    const error = await failureOf(pending)
    expect(error.code).toBe('run-owned')
    expect(error.message).toContain('thief')
    expect(model.calls).toHaveLength(1)
    expect(await kindsOf(store, run)).toEqual(['model'])
    expect((await store.runs.journal(run)).at(-1)).not.toHaveProperty('outcome')
    expect((await store.runs.get(run)).owner).toBe('thief')
  })

  it('a lost lease stops work that is under way', async () => {
    const { store } = await fresh()
    const runtime = elsewhere(store, { lease: 30 })
    const started = Promise.withResolvers<void>()
    const { agent } = agentWith(() => {
      started.resolve()
      return { text: 'late', delayMs: 60_000 }
    })
    const pending = runtime.run(agent, say())
    await started.promise
    const { owner } = await store.runs.get(pending.runId)
    await store.runs.claim(pending.runId, 'thief', 60_000, { instead: owner as string })
    expect((await failureOf(pending)).code).toBe('run-owned')
  })

  it('a lease that was given back is not renewed, and the run has not failed by that', async () => {
    const { store } = await fresh()
    await store.runs.create({ id: 'r' })
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] })
    try {
      const journal = await Journal.claim('r', store, 3000)
      journal.update({ status: 'done', release: true })
      await journal.settled()
      vi.advanceTimersByTime(6000)
      // A renewal would have been refused by the end of this turn.
      await new Promise(resolve => setImmediate(resolve))
      await journal.settled()
      journal.stop()
    } finally {
      vi.useRealTimers()
    }
    expect((await store.runs.get('r')).status).toBe('done')
  })

  it('an owner that is alive is not evicted', async () => {
    const { store } = await fresh()
    await store.runs.create({ id: 'r' })
    const one = await Journal.claim('r', store, 60_000)
    const error: RathError = await failureOf(Journal.claim('r', store, 60_000))
    expect(error.code).toBe('run-owned')
    one.stop()
  })
})
