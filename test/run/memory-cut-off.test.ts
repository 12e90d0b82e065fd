import { describe, expect, it, onTestFinished } from 'vitest'
import { Workflow } from '../../src/flow/workflow.ts'
import type { MemoryStore } from '../../src/memory/spec.ts'
import type { Session } from '../../src/session/session.ts'
import { fakeClock } from '../../src/testing/fake-clock.ts'
import { elsewhere, fresh, say } from './journal/make.ts'
import { release } from './journal/mortal.ts'
import { agentWith } from './make.ts'
import { open } from './memory/make.ts'

const remembering = (memory: MemoryStore) =>
  agentWith(() => 'Amber.', { memory, commitOnForward: true, recall: false }).agent

/** Ways to have an agent inside a run that commits by itself. */
const ways = {
  'on the session of the run': (memory: MemoryStore) => {
    const agent = remembering(memory)
    return new (class Around extends Workflow {
      forward(session: Session) {
        return agent(session.fork('inside'))
      }
    })()
  },
  'on a session that is begun inside it': (memory: MemoryStore) => {
    const agent = remembering(memory)
    return new (class Around extends Workflow {
      forward() {
        return agent(say('The door?'))
      }
    })()
  },
  'as a tool': (memory: MemoryStore) => {
    const tool = remembering(memory).asTool({ name: 'colour', description: 'Says a colour.' })
    const call = { toolCalls: [{ name: 'colour', args: { request: 'The door?' } }] }
    const isDone = ({ messages }: { messages: readonly { role: string }[] }) =>
      messages.some(({ role }) => role === 'tool')
    return agentWith(request => (isDone(request) ? 'Done.' : call), { tools: [tool] }).agent
  },
}

describe('an agent that was killed after it committed and before anybody heard of it', () => {
  for (const [way, make] of Object.entries(ways)) {
    it(`${way}, has committed once`, async () => {
      const memory = await open()
      const { store, runtime } = await fresh()
      const died = Promise.withResolvers<void>()
      const dying: MemoryStore = Object.assign(Object.create(memory), {
        commit: async (...asked: Parameters<MemoryStore['commit']>) => {
          await memory.commit(...asked)
          died.resolve()
          return new Promise(() => {})
        },
      })
      const { runId } = runtime.run(make(dying), say())
      await died.promise
      await release(store, runId)
      // Chunks that are made again have another time.
      const clock = fakeClock()
      onTestFinished(() => clock[Symbol.dispose]())
      await elsewhere(store).resume(runId, make(memory))
      const { entries } = await memory.list()
      expect(entries.map(({ text }) => text.split(': ').at(-1)).sort()).toHaveLength(2)
    })
  }
})

it('what an agent remembers and nobody waits for is part of the run, and ends it', async () => {
  const memory = await open()
  const gate = Promise.withResolvers<void>()
  const slow: MemoryStore = Object.assign(Object.create(memory), {
    write: async (...asked: Parameters<MemoryStore['write']>) => {
      await gate.promise
      return memory.write(...asked)
    },
  })
  const { store, runtime } = await fresh()
  const agent = remembering(slow)
  class Noting extends Workflow {
    forward(session: Session) {
      void agent.remember('The door is amber.')
      return session
    }
  }
  const pending = runtime.run(new Noting(), say())
  await pending
  gate.resolve()
  await expect.poll(async () => (await store.runs.get(pending.runId)).status).toBe('done')
  const [entry] = (await store.runs.journal(pending.runId)).filter(({ kind }) => kind !== 'definition')
  expect(entry?.outcome).toMatchObject({ value: {} })
})
