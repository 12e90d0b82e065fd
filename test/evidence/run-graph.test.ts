import { expect, test } from 'vitest'
import { writeBundle } from '../../src/evidence/bundle/write.ts'
import { dossierOf } from '../../src/evidence/dossier/dossier-of.ts'
import { Agent } from '../../src/flow/agent.ts'
import { Parallel, Sequential } from '../../src/flow/containers.ts'
import { Workflow } from '../../src/flow/workflow.ts'
import { graphOf } from '../../src/run/graph/graph.ts'
import { createRuntime } from '../../src/run/runtime.ts'
import { sessionGraph } from '../../src/session/graph.ts'
import { Session } from '../../src/session/session.ts'
import { openStore } from '../../src/store/open.ts'
import type { Store } from '../../src/store/spec.ts'
import { scripted } from '../../src/testing/scripted.ts'

const agent = (name: string) =>
  new Agent(`You are ${name}.`, { name, model: scripted([name]), builtins: false })

/** What each session of the run came from, by what made it. */
async function edgesOf(store: Store, run: string): Promise<Record<string, string[]>> {
  const { graph, isCut } = await graphOf(store, run)
  const { nodes } = graph
  expect(isCut).toBe(false)
  const names = new Map(
    nodes.map(({ id, lineage: { by, label, operation } }) => [id, by ?? label ?? operation]),
  )
  expect(new Set(names.values()).size).toBe(nodes.length)
  const name = (id: string) => names.get(id) as string
  return Object.fromEntries(nodes.map(({ id, lineage }) => [name(id), lineage.parents.map(name)]))
}

/** A run of a workflow in a store of its own. */
async function runOf(workflow: Workflow, input = Session.fromUserMessage('Go.')) {
  const store = await openStore('memory:')
  const runtime = createRuntime({ store })
  const pending = runtime.run(workflow, input)
  const result = await pending
  return {
    store,
    runtime,
    run: pending.runId,
    result,
    async [Symbol.asyncDispose]() {
      await runtime.close()
      await store.close()
    },
  }
}

class Review extends Workflow {
  writer = agent('writer')
  critics = new Parallel({ style: agent('style'), facts: new Sequential(agent('search'), agent('check')) })
  editor = agent('editor')

  async forward(session: Session): Promise<Session> {
    return this.editor(await this.critics(await this.writer(session)))
  }
}

test('a run is drawn with all of its sessions: steps, branches, their merge, and calls inside calls', async () => {
  await using made = await runOf(new Review())
  expect(await edgesOf(made.store, made.run)).toEqual({
    create: [],
    'Review/writer': ['create'],
    style: ['Review/writer'],
    facts: ['Review/writer'],
    'Review/critics/style': ['style'],
    'Review/critics/facts/search': ['facts'],
    'Review/critics/facts/check': ['Review/critics/facts/search'],
    'Review/critics': ['Review/critics/style', 'Review/critics/facts/check'],
    'Review/editor': ['Review/critics'],
    Review: ['Review/editor'],
  })
})

/** Two branches of a session that is never kept itself. One is gone on with, and no merge tells of the other. */
class Choice extends Workflow {
  first = agent('first')
  second = agent('second')
  last = agent('last')

  async forward(session: Session): Promise<Session> {
    const [one, two] = session.user('Try.').forks(['one', 'two'])
    const [chosen] = await Promise.all([this.first(one), this.second(two)])
    return this.last(chosen)
  }
}

const chosen = {
  one: ['create'],
  two: ['create'],
  'Choice/first': ['one'],
  'Choice/second': ['two'],
  'Choice/last': ['Choice/first'],
  Choice: ['Choice/last'],
}

test('a branch that nothing took in is there, though its parent was never kept', async () => {
  await using made = await runOf(new Choice())
  expect(await edgesOf(made.store, made.run)).toEqual({ create: [], ...chosen })
})

test('what was before the input, and what another run made of it, is left out', async () => {
  await using made = await runOf(new Review())
  const asked = made.result.user('Once more.')
  const pending = made.runtime.run(new Choice(), asked)
  const later = await pending
  await made.runtime.run(agent('other'), made.result)
  await made.runtime.run(agent('another'), later)
  const { one, two, ...rest } = chosen
  expect(await edgesOf(made.store, pending.runId)).toEqual({
    append: [],
    one: ['append'],
    two: ['append'],
    ...rest,
  })
})

test('a run is drawn while it goes on', async () => {
  const asked = Promise.withResolvers<void>()
  const answer = Promise.withResolvers<void>()
  const slow = scripted(async () => {
    asked.resolve()
    await answer.promise
    return 'late'
  })
  const store = await openStore('memory:')
  await using runtime = createRuntime({ store })
  const flow = new Sequential(
    agent('early'),
    new Agent('Wait.', { name: 'slow', model: slow, builtins: false }),
  )
  const pending = runtime.run(flow, Session.fromUserMessage('Go.'))
  const working = pending.then(session => session.id)
  await asked.promise
  expect((await store.runs.get(pending.runId)).output).toBe(null)
  expect(await edgesOf(store, pending.runId)).toEqual({ create: [], 'Sequential/early': ['create'] })
  answer.resolve()
  await working
})

test('no session comes from itself, though it began before what it took in', async () => {
  await using store = await openStore('memory:')
  const root = Session.fromUserMessage('Go.')
  const begun = root.append({ kind: 'note', name: 'begun' })
  const branches = begun.forks(['a', 'b']).map(fork => fork.append({ kind: 'assistant', text: fork.branch }))
  const merged = await begun.merge(branches, { policy: 'ours', by: 'end' })
  for (const session of [root, ...branches, merged]) await store.sessions.put(session)
  await store.runs.create({ id: 'run-1', input: root.id, output: merged.id })
  const [a, b] = branches as [Session, Session]
  const { nodes } = (await graphOf(store, 'run-1')).graph
  expect(Object.fromEntries(nodes.map(({ id, lineage }) => [id, lineage.parents]))).toEqual({
    [root.id]: [],
    [a.id]: [root.id],
    [b.id]: [root.id],
    [merged.id]: [root.id, a.id, b.id],
  })
  expect(sessionGraph(nodes).ancestors(merged.id)).toHaveLength(3)
})

test('what was begun before the first effect is there, and what came of the result is not, whatever the clock says', async () => {
  await using store = await openStore('memory:')
  const input = Session.fromUserMessage('Go.')
  const early = input.fork({ label: 'early', at: Date.now() - 1_000 })
  const result = input.append({ kind: 'assistant', text: 'Gone.' })
  const later = result.fork({ label: 'later' })
  for (const session of [input, early, result, later]) await store.sessions.put(session)
  // Made two seconds ago, as far as anybody can tell.
  const made = (Date.now() - 2_000).toString(16).padStart(12, '0')
  const id = `${made.slice(0, 8)}-${made.slice(8)}-7000-8000-000000000000`
  await store.runs.create({ id, input: input.id })
  expect(await edgesOf(store, id)).toEqual({
    create: [],
    early: ['create'],
    append: ['create'],
    later: ['append'],
  })
  const log = await store.runs.claim(id, 'me', 60_000)
  await log.append([{ kind: 'update', change: { status: 'done', output: result.id, release: true } }])
  expect(await edgesOf(store, id)).toEqual({ create: [], early: ['create'], append: ['create'] })
})

test('the graph, the dossier and the bundle of a run look for sessions by what they came from, whatever else the store holds', async () => {
  await using made = await runOf(new Review())
  const { store, run, result } = made
  for (let i = 0; i < 20; i++) await store.sessions.put(Session.fromUserMessage(`other ${i}`))
  const filters: unknown[] = []
  const sessions: Store['sessions'] = {
    ...store.sessions,
    list: async filter => {
      filters.push(filter)
      return store.sessions.list(filter)
    },
  }
  const watched = { ...store, sessions }
  await graphOf(watched, run)
  await dossierOf(watched, run)
  expect(filters).toEqual([])
  await graphOf(watched, result.id)
  const at = 1
  const bundle = await textOf(writeBundle(watched, { runs: [run], at }))
  // With sessions named, all of the store is looked at.
  expect(bundle).toBe(await textOf(writeBundle(store, { runs: [run], sessions: [], at })))
  expect(filters.length).toBeGreaterThan(0)
  for (const filter of filters) expect(filter).toMatchObject({ parent: expect.any(String) })
})

async function textOf(lines: AsyncIterable<string>): Promise<string> {
  let text = ''
  for await (const line of lines) text += line
  return text
}
