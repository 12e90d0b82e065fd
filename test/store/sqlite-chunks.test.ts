import { copyFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { expect, onTestFinished, test } from 'vitest'
import { Session } from '../../src/session/session.ts'
import { openStore } from '../../src/store/open.ts'
import type { StoreOptions } from '../../src/store/spec.ts'
import { refusalOf } from '../session/make.ts'
import { temporaryFolder } from './folder.ts'

function place(): string {
  const folder = temporaryFolder()
  onTestFinished(() => folder[Symbol.dispose]())
  return join(folder.path, 'rath.db')
}

async function open(path: string, options: StoreOptions = {}) {
  const store = await openStore(`sqlite:${path}`, { secrets: {}, durability: 'normal', ...options })
  onTestFinished(() => store.close())
  return store
}

function ask(path: string, sql: string): unknown {
  const db = new DatabaseSync(path, { readOnly: true })
  try {
    return Object.values(db.prepare(sql).get() ?? {})[0]
  } finally {
    db.close()
  }
}

const says = (text: string, at = 1000) => [{ kind: 'user' as const, content: text, at }]

test('a store that was never closed goes on where it stood', async () => {
  const path = place()
  const store = await open(path)
  const { id } = await store.sessions.put(Session.fromUserMessage('hello'))
  await store.sessions.append(id, says('one'))
  const { head } = await store.sessions.append(id, says('two'))
  const copy = place()
  for (const part of ['', '-wal']) copyFileSync(path + part, copy + part)
  const later = await open(copy)
  expect((await later.sessions.append(id, says('three'), { after: head as string })).length).toBe(4)
  expect((await later.sessions.get(id)).verify()).toEqual({ ok: true, checked: 4 })
})

test('the same chunk, appended to several sessions, is kept once, whoever appends it', async () => {
  const path = place()
  const store = await open(path)
  const trunk = await store.sessions.put(Session.fromUserMessage('hello'))
  await store.sessions.append(trunk.id, says('again'))
  // A fork would record its branch, too.
  const copies = async (count: number) => {
    const session = await store.sessions.get(trunk.id)
    return Promise.all(Array.from({ length: count }, () => store.sessions.put(session.detach())))
  }
  const detached = await copies(4)
  const other = await open(path)
  const writers = [store, store, other, store]
  for (const [i, { id }] of detached.entries()) await writers[i]?.sessions.append(id, says('same'))
  await store.sessions.append(trunk.id, says('same'))
  const together = await copies(2)
  await Promise.all(together.map(({ id }) => store.sessions.append(id, says('at once'))))
  expect(ask(path, 'SELECT count(*) FROM chunk WHERE session > 0')).toBe(4)
  const heads = await Promise.all(detached.map(async ({ id }) => (await store.sessions.row(id)).head))
  expect(new Set([...heads, (await other.sessions.row(trunk.id)).head]).size).toBe(1)
  for (const { id } of together)
    expect((await other.sessions.get(id)).verify()).toEqual({ ok: true, checked: 4 })
  // A session that moved without a row of its own goes on with one.
  const [first] = detached
  expect((await store.sessions.append(first?.id as string, says('own'))).length).toBe(4)
  expect((await other.sessions.row(first?.id as string)).length).toBe(4)
  expect((await other.sessions.row(trunk.id)).length).toBe(3)
})

test('a fork of what was just appended has its own time and length', async () => {
  const path = place()
  const store = await open(path)
  const trunk = await store.sessions.put(Session.fromUserMessage('hello'))
  await store.sessions.append(trunk.id, says('more'))
  const fork = await store.sessions.put((await store.sessions.get(trunk.id)).fork())
  const before = await store.sessions.row(fork.id)
  expect([before.length, before.updated === before.created]).toEqual([2, true])
  await store.sessions.append(trunk.id, says('on'))
  await store.close()
  const later = await open(path)
  expect(await later.sessions.row(fork.id)).toEqual(before)
  expect((await later.sessions.row(trunk.id)).length).toBe(3)
})

test('what a deleted session left behind is collected', async () => {
  const path = place()
  const store = await open(path)
  const gone = await store.sessions.put(Session.fromUserMessage('hello'))
  for (let i = 0; i < 5; i++) await store.sessions.append(gone.id, says(`${i}`))
  const kept = await store.sessions.put((await store.sessions.get(gone.id)).rewind(1))
  await store.sessions.delete(gone.id)
  expect(await store.gc({ olderThan: 0 })).toMatchObject({ chunks: 4 })
  expect((await store.sessions.get(kept.id)).verify()).toEqual({ ok: true, checked: 2 })
  expect((await store.sessions.append(kept.id, says('on'))).length).toBe(3)
  expect(await store.gc({ olderThan: 0 })).toMatchObject({ chunks: 0 })
  expect(ask(path, 'SELECT count(*) FROM chunk WHERE session > 0')).toBe(3)
})

test('a number that was taken and then collected is not taken again', async () => {
  const path = place()
  const [store, other] = [await open(path), await open(path)]
  const kept = await store.sessions.put(Session.fromUserMessage('hello'))
  const gone = await store.sessions.put(Session.fromUserMessage('goes'))
  const { head } = await store.sessions.append(kept.id, says('ours'))
  // Neither the mark of a deletion nor the chunks of a deleted session outlive gc, and all lie behind what `store` saw last.
  const passing = await other.sessions.put(Session.fromUserMessage('passes'))
  for (const { id } of [passing, gone]) await other.sessions.delete(id)
  expect(await other.gc({ olderThan: 0 })).toMatchObject({ chunks: 2 })
  const row = await store.sessions.append(kept.id, says('behind'), { after: head as string })
  expect(await other.sessions.row(kept.id)).toEqual(row)
  expect((await other.sessions.get(kept.id)).verify()).toEqual({ ok: true, checked: 3 })
})

test('nothing is appended to a session whose deletion was forgotten by gc', async () => {
  const path = place()
  const [store, other] = [await open(path), await open(path)]
  const { id } = await store.sessions.put(Session.fromUserMessage('hello'))
  await store.sessions.append(id, says('ours'))
  await other.sessions.delete(id)
  await other.gc({ olderThan: 0 })
  expect((await refusalOf(store.sessions.append(id, says('late')))).code).toBe('unknown-session')
})
