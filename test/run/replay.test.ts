import { describe, expect, it } from 'vitest'
import { Agent } from '../../src/flow/agent.ts'
import { Compressor } from '../../src/flow/compressor.ts'
import { map, Parallel, Sequential } from '../../src/flow/containers.ts'
import { Selector } from '../../src/flow/selector.ts'
import { Workflow } from '../../src/flow/workflow.ts'
import type { ModelRequest } from '../../src/model/spec.ts'
import type { ForwardContext } from '../../src/run/forward.ts'
import type { Session } from '../../src/session/session.ts'
import { type Script, scripted } from '../../src/testing/scripted.ts'
import { policy } from '../../src/tool/policy/policy.ts'
import { calls, counted, fresh, say } from './journal/make.ts'
import { agentWith, callsEcho, echo, failureOf } from './make.ts'

const agent = (prompt: string, script: Script, more = {}) =>
  new Agent(prompt, { model: scripted(script), builtins: false, ...more })

/** Records a run of one workflow and replays it with another. */
async function between(one: Workflow, other: Workflow, input = say()) {
  const { runtime } = await fresh()
  const pending = runtime.run(one, input)
  await pending.catch(() => {})
  return runtime.replay(pending.runId, other)
}

describe('a replay', () => {
  it('asks no model, runs no tool, writes nothing, and ends in the same state', async () => {
    const { runtime, store } = await fresh()
    const touch = counted('touch', 'external')
    const { agent: worker, model } = agentWith([calls('touch'), 'done'], { tools: [touch.tool] })
    const pending = runtime.run(worker, say())
    const out = await pending
    const before = JSON.stringify([await store.runs.list(), await store.sessions.list()])
    const report = await runtime.replay(pending.runId, worker)
    expect(report).toMatchObject({
      ok: true,
      state: out.state,
      recordedState: out.state,
      served: 3,
      status: 'done',
    })
    expect([model.calls.length, touch.counter.ran]).toEqual([2, 1])
    expect(JSON.stringify([await store.runs.list(), await store.sessions.list()])).toBe(before)
  })

  it('of a session that was forked before begins with the same forks', async () => {
    const { runtime } = await fresh()
    class Forked extends Workflow {
      agent = agent('Say.', () => 'said')
      forward(session: Session) {
        return this.agent(session.fork())
      }
    }
    const session = say()
    session.fork()
    const pending = runtime.run(new Forked(), session)
    expect((await pending).branch).toBe('#0')
    expect(await runtime.replay(pending.runId, new Forked())).toMatchObject({ ok: true })
    const again = runtime.run(new Forked(), session, { reuse: pending.runId })
    await again
    expect((await runtime.report(again.runId)).paid.calls).toBe(0)
  })

  it('covers selectors, compressors, agents as tools, containers, policies and budgets', async () => {
    const ruled = counted('ruled', 'read', { approval: async () => false })
    class Team extends Workflow {
      select = new Selector({ model: scripted(['not a choice', '{"reason":"because","choice":"critic"}']) })
      writer = agent('Write.', [callsEcho('x'), 'draft'], {
        tools: [echo],
        description: 'Writes.',
        name: 'writer',
      })
      critic = agent('Criticise.', ['weak'], { description: 'Criticises.', name: 'critic' })
      helper = agent('Help.', () => 'helped')
      lead = agent('Lead.', [{ toolCalls: [{ name: 'help', args: { request: 'now' } }] }, 'led'], {
        tools: [this.helper.asTool({ name: 'help', description: 'Helps.', effect: 'read' })],
      })
      guarded = agent('Guarded.', [calls('ruled', 'ruled'), 'ok'], {
        tools: [ruled.tool],
        policy: policy({ calls: [{ tool: 'ruled', most: 1 }] }),
      })
      short = new Compressor('Shorten.', { model: scripted(['summary']) })
      tired = agent('Tired.', [callsEcho('y'), callsEcho('z')], { tools: [echo], budget: { rounds: 2 } })
      async forward(session: Session) {
        let out = await this.writer(session)
        const next = await this.select(out, this.writer, this.critic)
        out = await next(out)
        out = await this.guarded(await this.lead(out))
        out = await new Parallel({ a: this.helper, b: this.helper })(out)
        out = await map(out, ['one', 'two'], this.helper)
        out = await new Sequential(this.helper, this.short)(out)
        return this.tired(out)
      }
    }
    const report = await between(new Team(), new Team())
    expect(report.divergence?.message ?? report.error?.message).toBeUndefined()
    expect(report).toMatchObject({ ok: true, unasked: [] })
    expect(report.session?.chunks.at(-1)).toMatchObject({ error: 'budget-spent' })
  })

  it('of a run that was begun with a policy needs none: what that said is on record', async () => {
    const { runtime } = await fresh()
    const remove = counted('remove', 'external')
    const worker = agentWith([calls('remove'), 'done'], { tools: [remove.tool] }).agent
    const pending = runtime.run(worker, say(), { policy: policy({ deny: ['remove'] }) })
    await pending
    expect(await runtime.replay(pending.runId, worker)).toMatchObject({ ok: true, unasked: [] })
    expect(remove.counter.ran).toBe(0)
  })

  it('tells of what is not asked for any more, tried again, inside others and left alone included', async () => {
    const { runtime } = await fresh()
    let fails = true
    class Mailing extends Workflow {
      readonly mails: boolean
      constructor(mails: boolean) {
        super()
        this.mails = mails
      }
      async forward(session: Session, context: ForwardContext) {
        await context.effect('outside', {}, () => context.effect('inside', {}, () => 1))
        if (this.mails) await context.effect('mail', { to: 'ada' }, () => 1)
        await context.effect('shaky', {}, () => {
          if (fails) throw new Error('not now')
        })
        void context.effect('left alone', {}, () => 1)
        return session
      }
    }
    const pending = runtime.run(new Mailing(true), say())
    await failureOf(pending)
    fails = false
    await runtime.resume(pending.runId, new Mailing(true))
    expect(await runtime.replay(pending.runId, new Mailing(true))).toMatchObject({ ok: true, unasked: [] })
    const mail = { kind: 'mail', by: 'Mailing', request: { to: 'ada' } }
    expect(await runtime.replay(pending.runId, new Mailing(false))).toMatchObject({ unasked: [mail] })
  })

  it('reproduces failed attempts and a failed run', async () => {
    const overloaded = { error: { status: 529 } }
    const one = agentWith([overloaded, 'done']).agent
    expect(await between(one, agentWith([]).agent)).toMatchObject({ ok: true, status: 'done' })
    const two = agentWith([{ error: { status: 400, message: 'bad' } }]).agent
    expect(await between(two, agentWith([]).agent)).toMatchObject({
      ok: true,
      status: 'failed',
      recorded: 'failed',
    })
  })

  it('of a run that failed in one of several branches fails in the same one', async () => {
    const team = () =>
      new Parallel({
        bad: agent('Bad.', [{ error: { status: 400, message: 'bad branch' } }]),
        slow: agent('Slow.', [{ text: 'never', delayMs: 60_000 }]),
      })
    const report = await between(team(), team())
    expect(report.divergence).toBeUndefined()
    expect(report).toMatchObject({ status: 'failed', recorded: 'failed' })
    expect(report.error?.message).toContain('bad branch')
  })

  it('takes the same first branch, whichever would be first now', async () => {
    /** Ends when it has asked, or only when it is told to stop. */
    class Racer extends Workflow {
      readonly ends: boolean
      readonly part: Agent
      constructor(said: string, ends: boolean) {
        super()
        this.ends = ends
        this.part = agent(`Say ${said}.`, [said])
      }
      async forward(session: Session, { signal }: ForwardContext) {
        const out = await this.part(session)
        if (!this.ends) await new Promise((_, reject) => signal.addEventListener('abort', reject))
        return out
      }
    }
    const race = (first: string) =>
      new Parallel({ a: new Racer('a', first === 'a'), b: new Racer('b', first === 'b') }, { join: 'first' })
    // When b is first now, a is not run, which would never end.
    expect((await between(race('b'), race('b'))).session?.text).toBe('b')
    const both = new Parallel({ a: new Racer('a', true), b: new Racer('b', true) }, { join: 'first' })
    const report = await between(race('b'), both)
    expect(report).toMatchObject({ ok: true })
    expect(report.session?.text).toBe('b')
  })

  it('gives each of several equal samples its own outcome, whatever order they finish in', async () => {
    class Samples extends Workflow {
      readonly writer: Agent
      constructor(delays: number[]) {
        super()
        let n = 0
        let rolled = 0
        const roll = counted('roll', 'read', { run: () => ++rolled })
        // The first answers are the same, so that what follows is asked from one state in the order of the delays.
        this.writer = agent(
          'Write.',
          ({ messages }: ModelRequest) => {
            const isFirst = messages.at(-1)?.role === 'user'
            return isFirst
              ? { toolCalls: [{ name: 'roll' }], delayMs: delays[n++] as number }
              : `draft of ${JSON.stringify(messages.at(-1))}`
          },
          { tools: [roll.tool] },
        )
      }
      async forward(session: Session) {
        const drafts = await Promise.all([1, 2, 3].map(() => this.writer(session)))
        return session.user(drafts.map(draft => draft.text).join(', '))
      }
    }
    const report = await between(new Samples([9, 5, 1]), new Samples([1, 5, 9]))
    expect(report).toMatchObject({ ok: true })
  })

  it('ends where the time of a budget ended it', async () => {
    const slow = counted('slow', 'read', { run: () => new Promise(() => {}) })
    const inTool = () => agentWith([calls('slow')], { tools: [slow.tool], budget: { time: 30 } }).agent
    expect(await between(inTool(), inTool())).toMatchObject({ ok: true, status: 'done' })
    const inModel = (delayMs: number) =>
      agentWith([{ text: 'late', delayMs }], { budget: { time: 30 } }).agent
    const report = await between(inModel(60_000), inModel(0))
    expect(report).toMatchObject({ ok: true, status: 'done' })
    expect(report.session?.chunks.at(-1)).toMatchObject({ error: 'budget-spent' })
  })

  it('shows a run that waits as waiting', async () => {
    const pay = counted('pay', 'external', { approval: true })
    const one = () => agentWith([calls('pay')], { tools: [pay.tool] }).agent
    expect(await between(one(), one())).toMatchObject({ ok: true, status: 'waiting', recorded: 'waiting' })
  })
})

describe('a divergence', () => {
  it('by another prompt names the chunk, the agent and the words', async () => {
    const { divergence, ok } = await between(agent('Be brief.', ['a']), agent('Be long.', ['a']))
    expect(ok).toBe(false)
    expect(divergence).toMatchObject({
      cause: 'other prompt',
      kind: 'model',
      by: 'Agent',
      after: { index: 0, kind: 'user' },
    })
    expect(divergence?.diff).toContain('-Be brief.')
    expect(divergence?.diff).toContain('+Be long.')
    expect(divergence?.message).toContain('after chunk 0 (user)')
  })

  it('by other tools shows what changed about them', async () => {
    const other = { ...echo, description: 'Says it twice.' }
    const { divergence } = await between(
      agent('P', ['a'], { tools: [echo] }),
      agent('P', ['a'], { tools: [other] }),
    )
    expect(divergence).toMatchObject({ cause: 'other tool schema' })
    expect(divergence?.diff).toContain('Says it twice.')
  })

  it('by another model or other settings', async () => {
    const one = new Agent('P', { model: scripted(['a'], { id: 'one' }), builtins: false })
    const two = new Agent('P', { model: scripted(['a'], { id: 'two' }), builtins: false })
    const { divergence } = await between(one, two)
    expect(divergence).toMatchObject({ cause: 'other settings' })
    expect(divergence?.diff).toMatch(/-.*"one"[\s\S]*\+.*"two"/)
  })

  it('by another order', async () => {
    const writer = () => agent('Write.', ['w'], { name: 'writer' })
    const critic = () => agent('Criticise.', ['c'], { name: 'critic' })
    const report = await between(new Sequential(writer(), critic()), new Sequential(critic(), writer()))
    expect(report.divergence).toMatchObject({ cause: 'other order' })
  })

  it('by an outcome that the record does not have', async () => {
    const once = agent('P', ['a'])
    class Twice extends Workflow {
      part = agent('P', ['a', 'b'])
      async forward(session: Session) {
        await this.part(session)
        return this.part(session)
      }
    }
    const { divergence, served } = await between(once, new Twice())
    expect(divergence).toMatchObject({ cause: 'missing outcome', by: 'Twice/part' })
    expect(served).toBe(1)
  })

  it('by what code between the effects made of them', async () => {
    const end = (text: string) =>
      new (class Ending extends Workflow {
        part = agent('P', ['a'])
        async forward(session: Session) {
          return (await this.part(session)).user(text)
        }
      })()
    const { divergence, ok } = await between(end('one'), end('two'))
    expect(ok).toBe(false)
    expect(divergence).toMatchObject({ cause: 'other state' })
    expect(divergence?.message).toContain('from chunk 2 (user) on')
  })

  it('by a request of one’s own', async () => {
    const own = (to: string) =>
      new (class Mailer extends Workflow {
        async forward(session: Session, context: ForwardContext) {
          await context.effect('mail', { to }, () => 1)
          return session
        }
      })()
    const { divergence } = await between(own('ada'), own('bob'))
    expect(divergence).toMatchObject({ cause: 'other request', kind: 'mail' })
    expect(divergence?.diff).toContain('bob')
  })
})

describe('other modes', () => {
  it('tools: run again and compared, unless they would touch the world', async () => {
    const { runtime } = await fresh()
    const steady = counted('steady', 'pure', { run: () => 'same' })
    const drifting = counted('drifting', 'pure')
    const pay = counted('pay', 'external')
    const { agent: worker, model } = agentWith([calls('steady', 'drifting', 'pay'), 'done'], {
      tools: [steady.tool, drifting.tool, pay.tool],
    })
    const pending = runtime.run(worker, say())
    const out = await pending
    const report = await runtime.replay(pending.runId, worker, { mode: 'tools' })
    expect(report).toMatchObject({
      ok: false,
      state: out.state,
      tools: [
        { tool: 'steady', same: true },
        { tool: 'drifting', same: false, recorded: { value: 'drifting 1' }, now: { value: 'drifting 2' } },
        { tool: 'pay', same: undefined },
      ],
    })
    expect([pay.counter.ran, model.calls.length]).toEqual([1, 2])
  })

  it('model: asked again, with recorded tools where it asks for the same and a refusal where not', async () => {
    const { runtime } = await fresh()
    const touch = counted('touch', 'external')
    const other = counted('other', 'external')
    const tools = [touch.tool, other.tool]
    const pending = runtime.run(agentWith([calls('touch'), 'done'], { tools }).agent, say())
    await pending
    const live = agentWith([calls('other', 'touch'), 'differently'], { tools })
    const report = await runtime.replay(pending.runId, live.agent, { mode: 'model' })
    expect(report.session?.text).toBe('differently')
    const outcomes = report.session?.chunks.flatMap(chunk =>
      chunk.kind === 'tool-result' ? [chunk.outcome] : [],
    )
    expect(outcomes).toMatchObject([{ kind: 'denied' }, { value: 'touch 1' }])
    expect([touch.counter.ran, other.counter.ran]).toEqual([1, 0])
  })

  it('model: one that does not end as the run did is not ok, and says why', async () => {
    class Mailing extends Workflow {
      agent: Agent
      constructor(agent: Agent) {
        super()
        this.agent = agent
      }
      async forward(session: Session, context: ForwardContext) {
        const done = await this.agent(session)
        await context.effect('mail', { text: done.text }, () => 'sent')
        return done
      }
    }
    const { runtime } = await fresh()
    const pending = runtime.run(new Mailing(agentWith(['done']).agent), say())
    await pending
    const again = (script: Script) =>
      runtime.replay(pending.runId, new Mailing(agentWith(script).agent), { mode: 'model' })
    expect(await again(['done'])).toMatchObject({ ok: true, recorded: 'done', status: 'done' })
    const failed = await again([{ error: { status: 400, message: 'no such model' } }])
    expect(failed).toMatchObject({ ok: false, recorded: 'done', status: 'failed' })
    expect(failed.error?.code).toBe('model-rejected')
    const other = await again(['something else'])
    expect(other).toMatchObject({
      ok: false,
      status: 'failed',
      divergence: { kind: 'mail', cause: 'other request' },
    })
    expect(other.error?.message).toContain('replay with a live model')
  })

  it('model: a run that failed and fails again because of something it never did is not ok', async () => {
    class Mailing extends Workflow {
      async forward(session: Session, context: ForwardContext): Promise<Session> {
        const done = await current.agent(session)
        await context.effect('mail', { text: done.text }, () => 'sent')
        throw new Error('later')
      }
    }
    const current = { agent: agentWith(['done', 'done', 'done']).agent }
    const { runtime } = await fresh()
    const pending = runtime.run(new Mailing(), say())
    await failureOf(pending)
    expect(await runtime.replay(pending.runId, new Mailing(), { mode: 'model' })).toMatchObject({
      ok: true,
      status: 'failed',
      recorded: 'failed',
    })
    current.agent = agentWith(['something else']).agent
    expect(await runtime.replay(pending.runId, new Mailing(), { mode: 'model' })).toMatchObject({ ok: false })
  })

  it('are refused by name when there is no such', async () => {
    const { runtime } = await fresh()
    const error = await failureOf(runtime.replay('r', agentWith([]).agent, { mode: 'loose' as never }))
    expect(error.message).toContain('strict, tools or model')
  })
})
