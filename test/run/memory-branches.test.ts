import { describe, expect, it } from 'vitest'
import type { Agent } from '../../src/flow/agent.ts'
import { Parallel, Sequential } from '../../src/flow/containers.ts'
import { Workflow } from '../../src/flow/workflow.ts'
import type { MemoryStore, NewMemory } from '../../src/memory/spec.ts'
import type { Session } from '../../src/session/session.ts'
import { scripted } from '../../src/testing/scripted.ts'
import { elsewhere, fresh, say } from './journal/make.ts'
import { agentWith, ask } from './make.ts'
import { memories, open, watched } from './memory/make.ts'

const amber = 'The harbour door is amber.'
const question = 'Which colour is the harbour door?'

/** Remembers a text and then answers. */
class Noting extends Workflow {
  readonly agent: Agent
  readonly text: string
  constructor(agent: Agent, text: string) {
    super()
    this.agent = agent
    this.text = text
  }
  async forward(session: Session) {
    await this.agent.remember(this.text)
    return this.agent(session)
  }
}

const texts = (hits: readonly { text: string }[]) => hits.map(({ text }) => text)

describe('branches and memory', () => {
  it('what a branch remembers its sibling does not see until it is committed', async () => {
    const memory = await open()
    const { agent } = agentWith(() => 'Hm.', { memory })
    const [left, right] = ask(question).forks(2) as [Session, Session]
    const noted = await new Noting(agent, amber)(left)
    expect(memories(noted).map(({ op, hits }) => [op, hits?.length])).toEqual([
      ['recall', 1],
      ['remember', undefined],
    ])
    expect(memories(await agent(right))[0]?.hits).toEqual([])
    expect(await agent.recall(question)).toEqual([])
    expect(texts(await agent.recall(question, { session: noted }))).toEqual([amber])
    // A fork of the branch sees it.
    expect(
      memories(await agent(noted.fork().user('And the colour of the harbour door now?'))).at(-1)?.hits,
    ).toHaveLength(1)
    expect((await agent.commit(noted)).settled).toBe(1)
    expect(
      memories(await agent(right.user(question)))
        .at(-1)
        ?.hits?.map(({ text }) => text),
    ).toContain(amber)
  })

  it('a merge that is committed adopts what its branches remembered', async () => {
    const memory = await open()
    const { agent } = agentWith(() => 'Hm.', { memory, recall: false })
    const both = new Parallel({
      left: new Noting(agent, amber),
      right: new Noting(agent, 'The harbour roof is teal.'),
    })
    const out = await both(ask(question))
    expect((await memory.list()).entries).toEqual([])
    expect((await agent.commit(out)).settled).toBe(2)
    expect(texts(await agent.recall('harbour door roof', { category: 'fact' })).sort()).toEqual([
      amber,
      'The harbour roof is teal.',
    ])
  })

  it.each(['the fork', 'the result', 'the merged result'])(
    'what a rejected branch remembered is found and says so, when the verdict names %s',
    async named => {
      const memory = await open()
      const { agent, model } = agentWith(() => 'Hm.', { memory })
      const [left, right] = ask(question).forks(['left', 'right'])
      const good = await new Noting(agent, amber)(left)
      const bad = await new Noting(agent, 'The harbour door is mauve, said the wrong branch.')(right)
      const subject = named === 'the fork' ? right.id : bad.id
      const base = named === 'the merged result' ? await good.merge(bad) : good
      await agent.commit(base.append({ kind: 'verdict', verdict: 'reject', subject, reason: 'wrong' }))
      const hits = await agent.recall('harbour door amber mauve branch', { category: 'fact' })
      expect(Object.fromEntries(hits.map(({ text, standing }) => [text, standing]))).toEqual({
        [amber]: 'adopted',
        'The harbour door is mauve, said the wrong branch.': 'rejected',
      })
      await agent(ask('Is the harbour door mauve?'))
      expect(JSON.stringify(model.calls.at(-1)?.messages)).toMatch(
        /standing=\\"rejected\\">The harbour door is mauve/,
      )
    },
  )

  it('inside forward, remember is for the session that the call was given; for a fork of it, name the fork', async () => {
    const memory = await open()
    const { agent } = agentWith(() => 'Hm.', { memory })
    let [left, right] = [] as Session[]
    const team = new (class Team extends Workflow {
      async forward(session: Session) {
        const [one, two] = session.forks(2) as [Session, Session]
        await agent.remember(amber, { session: one })
        await agent.remember('The harbour door has two locks.')
        expect(texts(await agent.recall('harbour door', { session: two }))).not.toContain(amber)
        ;[left, right] = await Promise.all([agent(one), agent(two)])
        return (left as Session).merge(right as Session)
      }
    })()
    const out = await team(ask(question))
    expect(memories(left as Session).map(({ op, hits }) => [op, hits?.length])).toEqual([
      ['remember', undefined],
      ['recall', 2],
    ])
    expect(memories(right as Session).at(-1)?.hits).toHaveLength(1)
    // Each is on the record once.
    expect(memories(out).filter(({ op }) => op === 'remember')).toHaveLength(2)
    expect((await agent.commit(out)).settled).toBe(1)
    expect(texts(await agent.recall('harbour door amber'))).toContain(amber)
  })

  it('what is remembered for a fork is on the record of the agent that is called with it inside other layers', async () => {
    const { agent } = agentWith(() => 'Hm.', { memory: await open() })
    let inner: Session | undefined
    const team = new (class Team extends Workflow {
      async forward(session: Session) {
        const fork = session.fork('amber')
        await agent.remember(amber, { session: fork })
        inner = await new Sequential(agent)(fork)
        return session
      }
    })()
    expect(memories(await team(ask(question)))).toEqual([])
    expect(memories(inner as Session).map(({ op }) => op)).toEqual(['remember', 'recall'])
  })

  it('what was kept for a fork that was rejected is marked, though the record of the call around it names it', async () => {
    const memory = await open()
    const { agent } = agentWith([], { memory })
    const team = new (class Team extends Workflow {
      async forward(session: Session) {
        const fork = session.fork('mauve')
        await agent.remember('The harbour door is mauve.', { session: fork })
        return session.append({ kind: 'verdict', verdict: 'reject', subject: fork.id })
      }
    })()
    const out = await team(ask(question))
    expect(memories(out)).toMatchObject([{ op: 'remember' }])
    expect(await agent.commit(out)).toMatchObject({ settled: 0 })
    expect(await agent.recall('mauve')).toMatchObject([{ standing: 'rejected' }])
  })

  it('two runs on the same words keep what each remembers apart', async () => {
    const memory = await open()
    const { agent } = agentWith(() => 'Hm.', { memory, recall: false })
    const runs = await Promise.all([1, 2].map(() => new Noting(agent, amber)(ask().fork('draft'))))
    for (const out of runs) expect(texts(await agent.recall(question, { session: out }))).toEqual([amber])
  })
})

describe('the journal and memory', () => {
  it('a replay touches no store and ends in the same state', async () => {
    const { backend, asked } = watched()
    const { runtime } = await fresh({}, { memories: [{ ...backend, name: 'notes' }] })
    const notes = '{"notes": [{"text": "The door is amber.", "category": "fact", "replaces": null}]}'
    class Team extends Workflow {
      agent = agentWith(() => 'Amber.', { memory: 'notes', commitOnForward: true }).agent
      other = agentWith(() => 'Teal.', { memory: 'notes' }).agent
      model = scripted(() => notes)
      async forward(session: Session) {
        const kept = await this.agent.remember(amber, { expires: Date.now() + 60_000 })
        const [left, right] = session.forks(2) as [Session, Session]
        await this.agent.remember('The harbour door creaks.', { session: left })
        const out = await (await this.agent(left)).merge(await this.other(right))
        await this.agent.commit(out, { model: this.model })
        await this.agent.recall('door', { session: out })
        await this.agent.forget(kept.id)
        await this.agent.forget('no-such-entry')
        return this.other(out.user(question))
      }
    }
    const pending = runtime.run(new Team(), say(question))
    const out = await pending
    expect(memories(out).some(({ error }) => error !== undefined)).toBe(false)
    const before = [...asked]
    const report = await runtime.replay(pending.runId, new Team())
    expect(report).toMatchObject({ ok: true, state: out.state })
    expect(asked).toEqual(before)
    await runtime.close()
  })

  it('a replay that recalls something else is a divergence', async () => {
    const memory = await open()
    const { runtime } = await fresh()
    const make = (query: string) => agentWith(['Hm.'], { memory, recall: { query: () => query } }).agent
    const pending = runtime.run(make('doors'), say())
    await pending
    expect(await runtime.replay(pending.runId, make('roofs'))).toMatchObject({ ok: false })
  })

  it('a run that goes on after it was cut off does not remember twice', async () => {
    const memory = await open()
    const { store, runtime } = await fresh()
    const died = Promise.withResolvers<void>()
    // It is written, and the process is gone before anybody hears of it.
    const dying: MemoryStore = Object.assign(Object.create(memory), {
      write: async (entries: readonly NewMemory[]) => {
        await memory.write(entries)
        died.resolve()
        return new Promise(() => {})
      },
    })
    const noting = (used: MemoryStore) =>
      new Noting(agentWith(() => 'Hm.', { memory: used, recall: false }).agent, amber)
    const { runId } = runtime.run(noting(dying), say())
    await died.promise
    const { owner } = await store.runs.get(runId)
    await (await store.runs.claim(runId, 'test', 1000, { instead: owner as string })).release()
    const out = await elsewhere(store).resume(runId, noting(memory))
    expect(out.text).toBe('Hm.')
    const { entries } = await memory.list()
    expect(entries).toHaveLength(1)
    expect(memories(out)).toMatchObject([{ op: 'remember', entries: [entries[0]?.id] }])
  })

  it('a run that goes on after the answer does not recall again, and commits once', async () => {
    const { backend, asked } = watched()
    const memory = await backend.open()
    await memory.write([{ text: amber }])
    const { store, runtime } = await fresh()
    let isDead = true
    const team = () =>
      new (class Team extends Workflow {
        agent = agentWith(() => 'Amber.', { memory, commitOnForward: true }).agent
        async forward(session: Session) {
          const out = await this.agent(session)
          if (isDead) throw new Error('killed')
          return out
        }
      })()
    const pending = runtime.run(team(), say(question))
    await expect(pending).rejects.toThrow('killed')
    isDead = false
    const before = [...asked]
    const out = await elsewhere(store).resume(pending.runId, team())
    expect(memories(out).map(({ op, hits }) => [op, hits?.length])).toEqual([
      ['recall', 1],
      ['commit', undefined],
    ])
    expect(asked).toEqual(before)
    await memory.close()
  })
})
