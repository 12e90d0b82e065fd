import { join } from 'node:path'
import { DatabaseSync, StatementSync } from 'node:sqlite'
import { expect, onTestFinished, test, vi } from 'vitest'
import { Session } from '../../src/session/session.ts'
import { sqliteDriver } from '../../src/store/drivers/sqlite/driver.ts'
import { openStore } from '../../src/store/open.ts'
import { refusalOf } from '../session/make.ts'
import { temporaryFolder } from './folder.ts'

async function twoConnections() {
  const folder = temporaryFolder()
  const path = join(folder.path, 'rath.db')
  const open = () => openStore(`sqlite:${path}`, { secrets: {}, durability: 'normal' })
  const [store, other] = [await open(), await open()]
  onTestFinished(async () => {
    await Promise.all([store.close(), other.close()])
    folder[Symbol.dispose]()
  })
  const session = Session.fromUserMessage('hello')
  await store.sessions.put(session)
  const says = (text: string) => [{ kind: 'user' as const, content: text }]
  return { path, store, other, id: session.id, says }
}

test('an append follows what another connection appended to a session that was just extended here', async () => {
  const { store, other, id, says } = await twoConnections()
  for (let i = 0; i < 20; i++) {
    const writer = i % 3 === 0 ? other : store
    expect((await writer.sessions.append(id, says(`${i}`))).length).toBe(i + 2)
  }
  const kept = await other.sessions.get(id)
  expect(kept.chunks.map(chunk => chunk.text)).toEqual([
    'hello',
    ...Array.from({ length: 20 }, (_, i) => `${i}`),
  ])
  expect(kept.verify().ok).toBe(true)
})

test('an append tells the tags of now, whoever set them', async () => {
  const { store, other, id, says } = await twoConnections()
  const tags = async () => (await store.sessions.append(id, says('more'))).tags
  expect(await tags()).toEqual([])
  await store.sessions.tag(id, 'ours')
  expect(await tags()).toEqual(['ours'])
  await other.sessions.tag(id, 'theirs')
  expect(await tags()).toEqual(['ours', 'theirs'])
  await store.sessions.untag('ours')
  expect(await tags()).toEqual(['theirs'])
})

test('a session that was just extended here and then deleted is unknown, whoever deleted it', async () => {
  const { store, other, id, says } = await twoConnections()
  await store.sessions.append(id, says('more'))
  await other.sessions.delete(id)
  expect((await refusalOf(store.sessions.append(id, says('late')))).code).toBe('unknown-session')

  const again = Session.fromUserMessage('again')
  await store.sessions.put(again)
  await store.sessions.append(again.id, says('more'))
  await store.sessions.delete(again.id)
  expect((await refusalOf(store.sessions.append(again.id, says('late')))).code).toBe('unknown-session')
})

test('an append whose transaction failed leaves the next one behind what is kept', async () => {
  const { path, store, id, says } = await twoConnections()
  const { head } = await store.sessions.append(id, says('kept'))
  const db = new DatabaseSync(path)
  db.exec("CREATE TRIGGER refusal BEFORE INSERT ON run BEGIN SELECT raise(ABORT, 'no'); END")
  db.close()
  // Asked for together, they share a transaction, and the run is written last.
  const together = [store.sessions.append(id, says('lost')), store.runs.create({ id: 'r' })]
  expect((await Promise.allSettled(together)).map(({ status }) => status)).toEqual(['rejected', 'rejected'])
  const row = await store.sessions.append(id, says('after'), { after: head as string })
  expect(row.length).toBe(3)
  expect((await store.sessions.get(id)).verify().ok).toBe(true)
})

test('what is decided on a session that another connection changed is decided again', async () => {
  const { store, other, id, says } = await twoConnections()
  await store.sessions.append(id, says('ours'))
  const { head } = await other.sessions.append(id, says('theirs'))
  expect((await store.sessions.append(id, says('behind it'), { after: head as string })).length).toBe(4)
  const { head: late } = await other.sessions.append(id, says('again'))
  const stale = (await store.sessions.chunks(id, 3)).at(0)?.id as string
  expect((await refusalOf(store.sessions.append(id, says('no'), { after: stale }))).code).toBe(
    'session-conflict',
  )
  expect((await store.sessions.row(id)).head).toBe(late)
})

test('a decision that only reads a session sees that another connection deleted it', async () => {
  const { path, store, other, id, says } = await twoConnections()
  const driver = await sqliteDriver(path, { durability: 'normal' })
  onTestFinished(() => driver.close())
  const lengths: (number | undefined)[] = []
  const look = () =>
    driver.commit({ sessions: [id], runs: [], entries: [] }, unit => {
      lengths.push(unit.session(id)?.length)
    })
  await look()
  await store.sessions.append(id, says('more'))
  await look()
  expect(lengths.at(-1)).toBe(2)
  await other.sessions.delete(id)
  await look()
  expect(lengths.at(-1)).toBe(undefined)
})

test('a run that goes on reads no rows, and reads again what another connection may have changed', async () => {
  const { store, other, id, says } = await twoConnections()
  const { get } = StatementSync.prototype
  const read: string[] = []
  const spy = vi.spyOn(StatementSync.prototype, 'get').mockImplementation(function (
    this: StatementSync,
    ...values: unknown[]
  ) {
    if (/SELECT .* FROM (entry|session|chunk)\b|SELECT \*/s.test(this.sourceSQL)) read.push(this.sourceSQL)
    return Reflect.apply(get, this, values)
  } as typeof get)
  onTestFinished(() => spy.mockRestore())
  const log = store.runs.begin({ id: 'r' }, 'owner', 60_000)
  const round = async (i: number) => {
    await log.append([
      { kind: 'intend', entry: { key: `k${i}`, occurrence: 0, kind: 'tool', request: { i } } },
    ])
    await log.append([{ kind: 'conclude', key: `k${i}`, occurrence: 0, outcome: i }])
    await store.sessions.append(id, says(`${i}`))
  }
  await round(0)
  read.length = 0
  for (let i = 1; i < 5; i++) await round(i)
  expect(read).toEqual([])
  await other.sessions.append(id, says('theirs'))
  expect((await store.sessions.append(id, says('behind it'))).length).toBe(8)
  expect(read.length).toBeGreaterThan(0)
})
