import { describe, expect, it } from 'vitest'
import { Agent } from '../../src/flow/agent.ts'
import { map } from '../../src/flow/containers.ts'
import { Workflow } from '../../src/flow/workflow.ts'
import { effect, type ForwardContext } from '../../src/run/forward.ts'
import type { Session } from '../../src/session/session.ts'
import { type Answer, scripted } from '../../src/testing/scripted.ts'
import { tool } from '../../src/tool/tool.ts'
import { elsewhere, fresh, say } from './journal/make.ts'
import { mortal, release } from './journal/mortal.ts'
import { agentWith, failureOf } from './make.ts'

const charging = (charged: string[], before: (who: string) => unknown = () => {}) =>
  tool({
    name: 'charge',
    description: 'Charges somebody.',
    input: { type: 'object', properties: { who: { type: 'string' } }, required: ['who'] },
    effect: 'external',
    resource: ({ who }) => who as string,
    run: async ({ who }: { who: string }) => {
      await before(who)
      charged.push(who)
      return `charged ${who}`
    },
  })

/** Charges whoever the last message names. */
function clerk(charged: string[], more: { prompt?: string; before?: (who: string) => unknown } = {}) {
  const model = scripted(({ messages }): Answer => {
    const last = messages.at(-1)
    if (last?.role === 'tool') return 'Charged.'
    const who =
      last?.role === 'user' ? last.content.map(part => ('text' in part ? part.text : '')).join('') : ''
    return { toolCalls: [{ id: 'call', name: 'charge', args: { who: who.split(' ')[0] as string } }] }
  })
  return new Agent(more.prompt ?? 'Charge.', {
    model,
    tools: [charging(charged, more.before)],
    builtins: false,
  })
}

const turns = async (count: number) => {
  for (let i = 0; i < count; i++) await new Promise(resolve => setImmediate(resolve))
}

type Waits = Readonly<Record<string, number>>

/** People are charged side by side, each after its own delay; then something fails, unless it `isFixed`. */
class Charges extends Workflow {
  readonly clerk: Agent
  readonly last: Agent
  readonly waits: Waits
  readonly way: 'forks' | 'map' | 'draws'

  constructor(charged: string[], waits: Waits, isFixed: boolean, way: 'forks' | 'map' | 'draws' = 'forks') {
    super()
    this.clerk = clerk(charged)
    this.last = agentWith([isFixed ? 'Done.' : { error: { status: 400 } }]).agent
    this.waits = waits
    this.way = way
  }

  async forward(session: Session, context: ForwardContext) {
    const one = async (who: string) => {
      await turns(this.waits[who] ?? 0)
      if (this.way === 'map') return map(session, [who], this.clerk)
      const told = this.way === 'draws' ? `${who} ${await context.id(who)}` : who
      return this.clerk(session.fork().user(told))
    }
    const [first, ...rest] = (await Promise.all(Object.keys(this.waits).map(one))) as [Session, ...Session[]]
    return this.last(await first.merge(rest))
  }
}

describe('a run that is resumed while its parts come in another order', () => {
  for (const way of ['forks', 'map', 'draws'] as const) {
    it(`charges nobody twice: ${way}`, async () => {
      const { runtime } = await fresh()
      const charged: string[] = []
      const failed = runtime.run(new Charges(charged, { ann: 0, bob: 20 }, false, way), say())
      await failureOf(failed)
      expect(charged).toEqual(['ann', 'bob'])
      // In the same places of the program, but in another order of time.
      const other = new Charges(charged, { ann: 20, bob: 0 }, true, way)
      const out = await runtime.resume(failed.runId, other)
      expect([out.text, charged]).toEqual(['Done.', ['ann', 'bob']])
      expect(await runtime.replay(failed.runId, other)).toMatchObject({ ok: true, state: out.state })
      const third = new Charges(charged, { ann: 0, bob: 20 }, true, way)
      expect(await runtime.replay(failed.runId, third)).toMatchObject({ ok: true, state: out.state })
    })
  }

  it('charges the one who was not charged, although the other comes later', async () => {
    const { store } = await fresh()
    const { state, view } = mortal(store)
    const charged: string[] = []
    const died = Promise.withResolvers<void>()
    class Dies extends Charges {
      override async forward(session: Session) {
        await this.clerk(session.fork().user('ann'))
        state.dead = true
        died.resolve()
        return new Promise<Session>(() => {})
      }
    }
    const pending = elsewhere(view).run(new Dies(charged, { ann: 0 }, true), say())
    await died.promise
    await release(store, pending.runId)
    await elsewhere(store).resume(pending.runId, new Charges(charged, { bob: 0, ann: 100 }, true))
    expect(charged).toEqual(['ann', 'bob'])
  })

  it('three samples of one writer have each their own answer', async () => {
    const { runtime } = await fresh()
    let said = 0
    class Samples extends Workflow {
      readonly writer = agentWith(() => `sample ${said++}`).agent
      readonly last: Agent
      constructor(isFixed: boolean) {
        super()
        this.last = agentWith([isFixed ? 'Done.' : { error: { status: 400 } }]).agent
      }
      async forward(session: Session) {
        const texts = await Promise.all(session.forks(3).map(async fork => (await this.writer(fork)).text))
        return this.last(session.user(texts.join('|')))
      }
    }
    const failed = runtime.run(new Samples(false), say())
    await failureOf(failed)
    const out = await runtime.resume(failed.runId, new Samples(true))
    expect(out.chunks.at(-2)?.text).toBe('sample 0|sample 1|sample 2')
    expect(await runtime.replay(failed.runId, new Samples(true))).toMatchObject({
      ok: true,
      state: out.state,
    })
  })
})

describe('a resumed run that is about to do what may be on record under another name', () => {
  /** Charged once, then the prompt changed. */
  async function doubtful() {
    const made = await fresh()
    const charged: string[] = []
    class One extends Workflow {
      readonly clerk: Agent
      readonly last: Agent
      constructor(prompt: string, isFixed: boolean) {
        super()
        this.clerk = clerk(charged, { prompt })
        this.last = agentWith([isFixed ? 'Done.' : { error: { status: 400 } }]).agent
      }
      async forward(session: Session) {
        return this.last(await this.clerk(session.user('ann')))
      }
    }
    // Another prompt is another question; its answer has other words, and so the call has another state.
    const first = made.runtime.run(new One('Charge.', false), say())
    await failureOf(first)
    const edited = () => {
      const one = new One('Charge them.', true)
      const model = scripted(({ messages }) =>
        messages.at(-1)?.role === 'tool'
          ? 'Charged.'
          : { text: 'At once.', toolCalls: [{ id: 'other', name: 'charge', args: { who: 'ann' } }] },
      )
      return Object.assign(one, {
        clerk: new Agent('Charge them.', { model, tools: [charging(charged)], builtins: false }),
      })
    }
    const stopped = await failureOf(made.runtime.resume(first.runId, edited()))
    return { ...made, run: first.runId, charged, edited, stopped }
  }

  it('stops, and shows both', async () => {
    const { store, run, charged, stopped } = await doubtful()
    expect(stopped.code).toBe('needs-review')
    expect(charged).toEqual(['ann'])
    expect((await store.runs.get(run)).status).toBe('needs-review')
    const open = await elsewhere(store).unfinished(run)
    expect(open).toEqual(stopped.data.calls)
    expect(open).toMatchObject([
      {
        id: 'other',
        why: 'not-on-record',
        request: { tool: 'charge', args: { who: 'ann' } },
        recorded: [{ id: 'call', outcome: { kind: 'value', value: 'charged ann' } }],
      },
    ])
  })

  it('uses the outcome that a person says it is', async () => {
    const { store, run, charged, edited } = await doubtful()
    const there = elsewhere(store)
    await there.review(run, 'other', { same: 'call', by: 'ada' })
    expect(await there.unfinished(run)).toEqual([])
    const out = await there.resume(run, edited())
    expect([out.text, charged]).toEqual(['Done.', ['ann']])
    const report = await there.replay(run, edited())
    expect(report).toMatchObject({ ok: true, state: out.state })
    expect(report.unasked.filter(({ kind }) => kind === 'tool')).toEqual([])
  })

  it('does it when a person says that it did not happen', async () => {
    const { store, run, charged, edited } = await doubtful()
    const there = elsewhere(store)
    await there.review(run, 'other', { happened: false })
    expect((await there.resume(run, edited())).text).toBe('Done.')
    expect(charged).toEqual(['ann', 'ann'])
  })

  it('takes a result that a person gives', async () => {
    const { store, run, charged, edited } = await doubtful()
    const there = elsewhere(store)
    await there.review(run, 'other', { happened: true, result: 'charged by hand' })
    const out = await there.resume(run, edited())
    expect(out.chunks.find(chunk => chunk.kind === 'tool-result')).toMatchObject({
      outcome: { value: 'charged by hand' },
    })
    expect(charged).toEqual(['ann'])
  })

  it('refuses an outcome that there is not', async () => {
    const { store, run } = await doubtful()
    await expect(elsewhere(store).review(run, 'other', { same: 'nothing' })).rejects.toThrow(
      'there are: call',
    )
    await expect(elsewhere(store).review(run, 'other', {})).rejects.toThrow('A review says')
  })
})

describe('two equal effects that were cut off at once', () => {
  async function cutOff(work: (die: () => Promise<never>) => Workflow) {
    const { store } = await fresh()
    const { state, view } = mortal(store)
    const died = Promise.withResolvers<void>()
    let under = 0
    const die = () => {
      if (++under === 2) {
        state.dead = true
        died.resolve()
      }
      return new Promise<never>(() => {})
    }
    const pending = elsewhere(view).run(work(die), say())
    pending.catch(() => {})
    await died.promise
    await release(store, pending.runId)
    return { store, run: pending.runId }
  }

  it('have each their own id, by which one is reviewed', async () => {
    const paid: number[] = []
    class Twice extends Workflow {
      readonly pay: () => unknown
      constructor(pay: () => unknown) {
        super()
        this.pay = pay
      }
      async forward(session: Session) {
        const both = [0, 1].map(() => effect('pay', { amount: 5 }, () => this.pay() as Promise<number>))
        return session.user((await Promise.all(both)).join(' and '))
      }
    }
    const { store, run } = await cutOff(die => new Twice(die))
    const runtime = elsewhere(store)
    const live = new Twice(() => paid.push(5))
    expect((await failureOf(runtime.resume(run, live))).code).toBe('needs-review')
    const open = await runtime.unfinished(run)
    expect(new Set(open.map(({ id }) => id)).size).toBe(2)
    await expect(runtime.review(run, open[0]?.key ?? '', { happened: true })).rejects.toThrow(
      'Several effects',
    )
    await runtime.review(run, open[0]?.id ?? '', { happened: true, result: 7 })
    await runtime.review(run, open[1]?.id ?? '', { happened: false })
    const out = await runtime.resume(run, live)
    expect(paid).toEqual([5])
    expect(out.chunks.findLast(chunk => chunk.kind === 'user')?.text).toBe('7 and 1')
  })

  it('so have calls of two branches that share a call id', async () => {
    const charged: string[] = []
    class Both extends Workflow {
      readonly clerk: Agent
      constructor(before: () => unknown) {
        super()
        this.clerk = clerk(charged, { before })
      }
      async forward(session: Session) {
        const [a, b] = await Promise.all(['ann', 'bob'].map(who => this.clerk(session.fork(who).user(who))))
        return (a as Session).merge(b as Session)
      }
    }
    const { store, run } = await cutOff(die => new Both(die))
    const runtime = elsewhere(store)
    const live = new Both(() => {})
    await failureOf(runtime.resume(run, live))
    const open = await runtime.unfinished(run)
    expect(open.every(({ id }) => id.startsWith('call@'))).toBe(true)
    const ann = open.find(({ request }) => JSON.stringify(request).includes('ann'))
    const bob = open.find(({ request }) => JSON.stringify(request).includes('bob'))
    await runtime.review(run, ann?.id ?? '', { happened: true, result: 'charged ann' })
    await runtime.review(run, bob?.id ?? '', { happened: false })
    await runtime.resume(run, live)
    expect(charged).toEqual(['bob'])
  })
})
