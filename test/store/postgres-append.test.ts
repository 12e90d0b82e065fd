import pg from 'pg'
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from 'vitest'
import { alterationOf } from '../../src/session/altered.ts'
import { Session } from '../../src/session/session.ts'
import { Pool } from '../../src/store/drivers/postgres/pool.ts'
import { migrate, migrations } from '../../src/store/drivers/postgres/schema.ts'
import { openStore } from '../../src/store/open.ts'
import { type PostgresServer, startPostgres } from '../support/postgres.ts'

let server: PostgresServer
beforeAll(async () => {
  server = await startPostgres({ fsync: false })
})
afterAll(() => server?.stop())

const user = (text: string) => ({ kind: 'user', content: text }) as const

type Query = (this: unknown, given: unknown, ...rest: unknown[]) => Promise<unknown>
const textOf = (given: unknown) => (typeof given === 'string' ? given : (given as { text: string }).text)
const isInsert = (given: unknown) => textOf(given).includes('INSERT INTO openrath.chunk (')

/** Two stores over one database and a session that the first has written. `during` stands in for every query until the test ends. */
async function twoStores() {
  const url = await server.createDatabase()
  const open = () => openStore(url, { durability: 'normal', secrets: {}, busyTimeout: 5_000 })
  const [store, other] = [await open(), await open()]
  onTestFinished(async () => {
    vi.restoreAllMocks()
    await Promise.all([store.close(), other.close()])
  })
  const session = Session.fromUserMessage('hello')
  await store.sessions.put(session)
  const said = async () => (await other.sessions.get(session.id)).chunks.map(chunk => chunk.text)
  const during = (query: (send: () => Promise<unknown>, given: unknown) => Promise<unknown>) => {
    const send = pg.Client.prototype.query as unknown as Query
    vi.spyOn(pg.Client.prototype, 'query').mockImplementation(function (this: unknown, ...args: unknown[]) {
      return query(() => send.apply(this, args as [unknown]), args[0]) as never
    } as never)
  }
  return { url, store, other, id: session.id, said, during }
}

const twenty = Array.from({ length: 20 }, (_, i) => `word${i}`)

const broken = () => Object.assign(new Error('read ECONNRESET'), { code: 'ECONNRESET' })

test('an append to what another process extended, tagged or deleted starts over', async () => {
  const { store, other, id, said } = await twoStores()
  await store.sessions.append(id, [user('ours')])
  await other.sessions.append(id, [user('theirs')])
  expect((await store.sessions.append(id, [user('behind')])).length).toBe(4)
  expect(await said()).toEqual(['hello', 'ours', 'theirs', 'behind'])

  const { store: alone, other: second, id: tagged } = await twoStores()
  await second.sessions.tag(tagged, 'theirs')
  expect((await alone.sessions.append(tagged, [user('more')])).tags).toEqual(['theirs'])

  const { store: third, other: fourth, id: deleted } = await twoStores()
  await fourth.sessions.delete(deleted)
  await expect(third.sessions.append(deleted, [user('late')])).rejects.toMatchObject({
    code: 'unknown-session',
  })
})

test('a chunk that is stored already is not stored again', async () => {
  const { store, url, id, said } = await twoStores()
  const before = await store.sessions.get(id)
  for (const text of twenty) await store.sessions.append(id, [{ ...user(text), at: 5 }])
  const twin = await store.sessions.put(before.append({ ...user(twenty[0] as string), at: 5 }))
  for (const text of twenty.slice(1)) await store.sessions.append(twin.id, [{ ...user(text), at: 5 }])
  expect((await store.sessions.row(twin.id)).head).toBe((await store.sessions.row(id)).head)
  expect(await said()).toEqual(['hello', ...twenty])
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  expect((await client.query('SELECT n FROM openrath.chunk')).rowCount).toBe(21)
  await client.end()
})

test('a connection that breaks before the commit is replaced, and nothing is written twice', async () => {
  const { store, id, said, during } = await twoStores()
  let breaks = 2
  during(async (send, given) => {
    const result = await send()
    if (isInsert(given) && breaks-- > 0) throw broken()
    return result
  })
  for (const text of twenty) await store.sessions.append(id, [user(text)])
  expect(breaks).toBeLessThan(2)
  expect(await said()).toEqual(['hello', ...twenty])
})

test('whoever cannot find out whether the server has committed is told so', async () => {
  const { store, id, during } = await twoStores()
  let down = false
  during(async (send, given) => {
    down ||= textOf(given) === 'COMMIT'
    if (down) throw broken()
    return send()
  })
  await expect(store.sessions.append(id, [user('lost?')])).rejects.toMatchObject({
    code: 'store-unreachable',
    data: { fate: 'unknown' },
  })
})

test('chunks appended one by one are found, and leave nothing waiting for the word index', async () => {
  const { store, url, id } = await twoStores()
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  const queued = async () => (await client.query('SELECT first FROM openrath.unindexed')).rowCount
  for (const text of twenty) await store.sessions.append(id, [user(text)])
  for (let i = 0; i < 20; i += 7) expect((await store.sessions.search(`word${i}`)).length).toBe(1)
  expect(await queued()).toBe(0)
  for (let i = 20; i < 23; i++) {
    await store.sessions.append(id, [user(`word${i}`)])
    expect((await store.sessions.search(`word${i}`)).length).toBe(1)
  }
  await client.end()
})

test('a cursor that no change can have had is refused', async () => {
  const { store } = await twoStores()
  expect(() => store.sessions.subscribe(() => {}, { cursor: 'nonsense' })).toThrow('is not a cursor')
})

test.each([1, 2])('a store of format %i is brought forward and goes on', async format => {
  const url = await server.createDatabase()
  const pool = await Pool.open(url, {})
  await pool.transaction(connection => migrate(connection, url, migrations.slice(0, format)))
  const functions = () =>
    pool.query("SELECT 1 FROM pg_proc WHERE proname = 'extend' AND pronamespace = 'openrath'::regnamespace")
  expect(await functions()).toHaveLength(format - 1)
  await using store = await openStore(url, { durability: 'normal', secrets: {} })
  expect(await functions()).toHaveLength(0)
  await pool.close()
  const { id } = await store.sessions.put(Session.fromUserMessage('hello'))
  for (const text of twenty) await store.sessions.append(id, [user(text)])
  expect((await store.sessions.get(id)).verify()).toEqual({ ok: true, checked: 21 })
})

test('a chunk that was altered in the database is noticed before anybody acts on it, and what is as it was costs one look', async () => {
  const { url, store, other, id } = await twoStores()
  await store.sessions.append(id, [user('pay 100')])
  const whole = await other.sessions.get(id)
  expect(alterationOf(whole)).toBeUndefined()
  const client = new pg.Client(url)
  await client.connect()
  const { rowCount } = await client.query(
    "UPDATE openrath.chunk SET body = replace(body, 'pay 100', 'pay 999')",
  )
  await client.end()
  expect(rowCount).toBeGreaterThan(0)
  const fresh = await openStore(url, { secrets: {} })
  onTestFinished(() => fresh.close())
  const altered = await fresh.sessions.get(id)
  expect(alterationOf(altered.fork().user('on'))).toMatchObject({ index: 1 })
  // What was read before it was altered is still what it was.
  expect(alterationOf(whole.user('on'))).toBeUndefined()
})
