import { expect, test } from 'vitest'
import { Session } from '../../src/session/session.ts'
import { openStore } from '../../src/store/open.ts'
import { says, user } from '../session/make.ts'

test('a summary appended by the store names merged chunks as one appended to the session does', async () => {
  await using store = await openStore('memory:', { secrets: {} })
  const base = Session.fromUserMessage('start')
  const merged = await base
    .fork('one')
    .append(says('first'))
    .merge(base.fork('two').append(says('second')))
  const replaced = merged.chunks.filter(chunk => chunk.kind === 'assistant').map(chunk => chunk.id)
  const summary = { kind: 'compress', replaced, summary: 'both', at: 1000 } as const
  const expected = merged.append(summary)
  const names = expected.chunks.at(-1) as unknown as { replaced: readonly string[] }
  expect(names.replaced).not.toEqual(replaced)

  await store.sessions.put(merged)
  await store.sessions.append(merged.id, [summary])
  const kept = await store.sessions.get(merged.id)
  expect(kept.head).toBe(expected.head)
  expect(kept.messages()).toEqual(expected.messages())
  await store.sessions.append(merged.id, [user('on')])
  expect((await store.sessions.get(merged.id)).verify().ok).toBe(true)
})
