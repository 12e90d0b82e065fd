import { describe, expect, it } from 'vitest'
import { Workflow } from '../../src/flow/workflow.ts'
import type { ForwardContext } from '../../src/run/forward.ts'
import type { Session } from '../../src/session/session.ts'
import { calls, counted, elsewhere, fresh, say } from './journal/make.ts'
import { mortal, release } from './journal/mortal.ts'
import { agentWith } from './make.ts'

/** Two parts do the same side by side; the second gets there first, which a replay, where nothing takes time, cannot know. */
function pair(work: (part: Part, session: Session, context: ForwardContext) => Promise<Session>) {
  class One extends Part {
    override async forward(session: Session, context: ForwardContext) {
      await context.effect('wait', { name: this.label }, () => this.turn?.promise, { effect: 'read' })
      const out = await work(this, session, context)
      this.next?.turn?.resolve()
      await context.effect('tell', { name: this.label }, () => null, { session: out })
      return out
    }
  }
  class Pair extends Workflow {
    readonly left: Part = new One('left', Promise.withResolvers<void>())
    readonly right: Part = new One('right', undefined, this.left)
    async forward(session: Session) {
      const [left, right] = await Promise.all([this.left(session), this.right(session)])
      return left.merge(right)
    }
  }
  return new Pair()
}

let said = 0

abstract class Part extends Workflow {
  readonly label: string
  readonly turn: PromiseWithResolvers<void> | undefined
  readonly next: Part | undefined
  readonly writer = agentWith(() => `sample ${said++}`).agent
  constructor(label: string, turn?: PromiseWithResolvers<void>, next?: Part) {
    super()
    this.label = label
    this.turn = turn
    this.next = next
  }
}

describe('layers of different names that do the same side by side', () => {
  const works: Record<string, Parameters<typeof pair>[0]> = {
    'ask the same': (part, session) => part.writer(session),
    'draw from the same chance': async (_, session, context) => session.user(`${await context.random()}`),
    'fork the session that both were given': (part, session) => part.writer(session.fork()),
  }
  for (const [what, work] of Object.entries(works)) {
    it(`${what}, and each gets its own again, whichever was first`, async () => {
      const { runtime } = await fresh()
      const workflow = pair(work)
      const first = runtime.run(workflow, say())
      await first
      expect(await runtime.replay(first.runId, workflow)).toMatchObject({ ok: true })
    })
  }
})

it('what was asked under another name is found all the same', async () => {
  const { runtime } = await fresh()
  const first = runtime.run(agentWith(['done'], { name: 'ada' }).agent, say())
  await first
  const renamed = agentWith([], { name: 'bea' })
  expect(await runtime.replay(first.runId, renamed.agent)).toMatchObject({ ok: true })
  expect((await runtime.run(renamed.agent, say(), { reuse: first.runId })).text).toBe('done')
})

it('a fork made in a tool is the same one when the other calls of the turn are on record', async () => {
  const { store } = await fresh()
  const { state, view } = mortal(store)
  const died = Promise.withResolvers<void>()
  const inner = agentWith(() => 'inner')
  const forking = (name: string, after: () => unknown) =>
    counted(name, 'read', {
      run: async (_, { session }) => {
        const { text } = await inner.agent(session.fork())
        await after()
        return text
      },
    }).tool
  const first = forking('first', () => {})
  const dies = forking('second', () => {
    state.dead = true
    died.resolve()
    return new Promise(() => {})
  })
  const resource = (one: typeof dies) => ({ ...one, resource: () => 'same' })
  const script = [calls('first', 'second'), 'done']
  const cut = agentWith(script, { tools: [first, dies].map(resource) })
  const pending = elsewhere(view).run(cut.agent, say())
  pending.catch(() => {})
  await died.promise
  await release(store, pending.runId)
  const tools = [first, forking('second', () => {})].map(resource)
  await elsewhere(store).resume(pending.runId, agentWith(['done'], { tools }).agent)
  expect(inner.model.calls).toHaveLength(2)
})
