import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it, onTestFinished, vi } from 'vitest'
import { Workflow } from '../../src/flow/workflow.ts'
import { createRuntime } from '../../src/run/runtime.ts'
import { sessionGraph } from '../../src/session/graph.ts'
import type { Session } from '../../src/session/session.ts'
import { openStore } from '../../src/store/open.ts'
import { agentWith, ask, store as defaultStore } from './make.ts'

it('a run in a runtime of its own is recorded there and nowhere else', async () => {
  const store = await openStore('memory:')
  const runtime = createRuntime({ store })
  const out = await runtime.run(agentWith(['done']).agent, ask())
  expect((await store.sessions.get(out.id)).text).toBe('done')
  await expect(defaultStore.sessions.get(out.id)).rejects.toThrow('There is no session')
})

it('everything that a workflow made is in the store, and its graph is whole', async () => {
  const store = await openStore('memory:')
  class Team extends Workflow {
    writer = agentWith(() => 'draft').agent
    critic = agentWith(() => 'good').agent
    forward(session: Session) {
      return this.critic(this.writer(session))
    }
  }
  const out = await createRuntime({ store }).run(new Team(), ask())
  const { rows } = await store.sessions.list({ limit: 100 })
  const graph = sessionGraph(rows)
  expect(graph.ancestors(out.id)).toHaveLength(1)
  expect(rows.map(row => row.lineage.operation).sort()).toEqual([
    'Agent',
    'Agent',
    'Team',
    'create',
    'create',
  ])
})

it('a store that could not be opened is tried again by the next call', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'rath-'))
  const file = join(folder, 'later')
  await writeFile(file, '')
  await using runtime = createRuntime({ store: `sqlite:${join(file, 'rath.db')}` })
  const { agent } = agentWith(() => 'done')
  await expect(runtime.run(agent, ask())).rejects.toThrow()
  await rm(file)
  expect((await runtime.run(agent, ask())).text).toBe('done')
  await rm(folder, { recursive: true })
})

it('a lease that is longer than a timer holds is renewed now and then, and not all the time', async () => {
  const timers = vi.spyOn(globalThis, 'setInterval')
  onTestFinished(() => timers.mockRestore())
  const runtime = createRuntime({ store: await openStore('memory:'), lease: 1e12 })
  await runtime.run(agentWith(['done']).agent, ask())
  expect(timers.mock.calls.map(([, ms]) => ms)).toEqual([3_600_000])
})
