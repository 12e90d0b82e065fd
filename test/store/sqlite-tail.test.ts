import { copyFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { expect, onTestFinished, test } from 'vitest'
import { Session } from '../../src/session/session.ts'
import { longestTail } from '../../src/store/drivers/sqlite/tail.ts'
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

const tailLength = (path: string) =>
  ask(path, "SELECT count(*) FROM chunk WHERE n > (SELECT value FROM counter WHERE name = 'folded')")
const says = (text: string, at = 1000) => [{ kind: 'user' as const, content: text, at }]

test('what is in the tail is read by others, also by who only reads, as what is not', async () => {
  const path = place()
  const store = await open(path)
  const { id } = await store.sessions.put(Session.fromUserMessage('hello'), { tag: 't' })
  for (const text of ['one', 'two', 'three']) await store.sessions.append(id, says(text))
  expect(tailLength(path)).toBeGreaterThan(3)
  const row = await store.sessions.row(id)
  for (const options of [{}, { readOnly: true }]) {
    const other = await open(path, options)
    expect(await other.sessions.row('t')).toEqual(row)
    expect((await other.sessions.list()).rows).toEqual([row])
    const session = await other.sessions.get(id)
    expect([session.length, session.chunks.at(-1)?.text, session.verify().ok]).toEqual([4, 'three', true])
    expect((await other.sessions.chunks(id, 2)).map(({ index }) => index)).toEqual([2, 3])
  }
  await store.close()
  expect(tailLength(path)).toBe(0)
  expect(await (await open(path)).sessions.row(id)).toEqual(row)
})

test('a store that was never closed goes on from its tail', async () => {
  const path = place()
  const store = await open(path)
  const { id } = await store.sessions.put(Session.fromUserMessage('hello'))
  await store.sessions.append(id, says('one'))
  const { head } = await store.sessions.append(id, says('two'))
  const copy = place()
  for (const part of ['', '-wal']) copyFileSync(path + part, copy + part)
  expect(tailLength(copy)).toBeGreaterThan(2)
  const later = await open(copy)
  expect((await later.sessions.append(id, says('three'), { after: head as string })).length).toBe(4)
  expect((await later.sessions.get(id)).verify()).toEqual({ ok: true, checked: 4 })
})

test('a tail that has become long is folded, and nothing changes for readers', async () => {
  const path = place()
  const store = await open(path)
  const { id } = await store.sessions.put(Session.create('empty'))
  const idle = await store.sessions.put(Session.fromUserMessage('idle'))
  const other = await open(path)
  const lengths: unknown[] = []
  for (let i = 1; i <= longestTail + 50; i++) {
    const row = await store.sessions.append(id, says(`${i}`))
    if (i % 50 === 0) expect(await other.sessions.row(id)).toEqual(row)
    lengths.push(tailLength(path))
  }
  expect(Math.max(...(lengths as number[]))).toBeLessThanOrEqual(longestTail)
  expect(lengths.at(-1)).toBeLessThan(60)
  expect((await other.sessions.get(id)).verify()).toEqual({ ok: true, checked: longestTail + 50 })
  expect(await other.sessions.get(idle.id)).toMatchObject({ head: idle.head, length: 1 })
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

test('a fork of what lies in the tail has its own time and length', async () => {
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

test('what a deleted session left in the tail is collected', async () => {
  const path = place()
  const store = await open(path)
  const gone = await store.sessions.put(Session.fromUserMessage('hello'))
  for (let i = 0; i < 5; i++) await store.sessions.append(gone.id, says(`${i}`))
  const kept = await store.sessions.put((await store.sessions.get(gone.id)).rewind(1))
  await store.sessions.delete(gone.id)
  expect(await store.gc({ olderThan: 0 })).toMatchObject({ chunks: 4 })
  expect((await store.sessions.get(kept.id)).verify()).toEqual({ ok: true, checked: 2 })
  expect((await store.sessions.append(kept.id, says('on'))).length).toBe(3)
  expect(ask(path, 'SELECT count(*) FROM digest')).toBe(2)
  expect(await store.gc({ olderThan: 0 })).toMatchObject({ chunks: 0 })
  expect(ask(path, 'SELECT count(*) FROM digest')).toBe(3)
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

test('a tail is folded as well where each session is put with a tag', async () => {
  const path = place()
  const store = await open(path)
  for (let i = 0; i < longestTail + 50; i++)
    await store.sessions.put(Session.fromUserMessage(`${i}`), { tag: 'newest' })
  expect(tailLength(path)).toBeLessThan(60)
})
