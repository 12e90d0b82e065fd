import { expect, test } from 'vitest'
import { Agent } from '../../src/flow/agent.ts'
import { createRuntime } from '../../src/run/runtime.ts'
import { openStore } from '../../src/store/open.ts'
import { scripted } from '../../src/testing/scripted.ts'

const echo = () =>
  new Agent('Answer.', {
    model: scripted(({ messages }) => `${messages.filter(({ role }) => role === 'user').length}`),
  })

test('a conversation has one name over many turns, in this process and the next', async () => {
  const store = await openStore('memory:')
  const agent = echo()
  const chat = createRuntime({ store }).conversation('user/ann')
  expect((await chat.open()).length).toBe(0)
  expect((await chat.send(agent, 'Hello')).text).toBe('1')
  expect((await chat.send(agent, 'Again')).text).toBe('2')
  const later = createRuntime({ store }).conversation('user/ann')
  const third = await later.send(agent, 'Still here?')
  expect([third.text, third.length]).toEqual(['3', 6])
  expect((await store.sessions.get('user/ann')).id).toBe(third.id)
  const other = await createRuntime({ store }).conversation('user/bob').send(agent, 'Hi')
  expect(other.text).toBe('1')
})

test('of two who answer at once, the second is refused, and nothing of either is lost', async () => {
  const store = await openStore('memory:')
  const runtime = createRuntime({ store })
  const agent = echo()
  await runtime.conversation('ann').send(agent, 'Hello')
  const [one, two] = [runtime.conversation('ann'), runtime.conversation('ann')]
  const [first, second] = [await one.open(), await two.open()]
  const saved = await one.save(await agent(first.user('From here'), { runtime }))
  const lost = await agent(second.user('From there'), { runtime })
  await expect(two.save(lost)).rejects.toMatchObject({ code: 'session-conflict', data: { tag: 'ann' } })
  expect((await store.sessions.get('ann')).id).toBe(saved.id)
  expect((await store.sessions.get(lost.id)).text).toBe('2')
  // Opened again, it goes on from what the other said.
  expect((await two.send(agent, 'Sorry')).length).toBe(6)
})

test('many who begin one conversation begin the same one, and each turn is saved once', async () => {
  const store = await openStore('memory:')
  const agent = echo()
  const ends = await Promise.allSettled(
    Array.from({ length: 10 }, () => createRuntime({ store }).conversation('new').send(agent, 'Hello')),
  )
  expect(ends.filter(({ status }) => status === 'fulfilled')).toHaveLength(1)
  const session = await store.sessions.get('new')
  expect([session.length, session.lineage.parents.length]).toEqual([2, 1])
})
