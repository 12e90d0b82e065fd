import { execFileSync } from 'node:child_process'
import { cpSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { inspect } from 'node:util'
import pg from 'pg'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { Session } from '../../src/session/index.ts'
import { changes, cutOff, followedSessions } from '../../src/store/drivers/postgres/changes.ts'
import { postgresDriver } from '../../src/store/drivers/postgres/driver.ts'
import { Pool } from '../../src/store/drivers/postgres/pool.ts'
import { openStore } from '../../src/store/open.ts'
import type { SessionRow } from '../../src/store/spec.ts'
import { testStore } from '../../src/testing/index.ts'
import { refusalOf } from '../session/make.ts'
import { type PostgresServer, password, startPostgres } from '../support/postgres.ts'
import { temporaryFolder } from './folder.ts'

let server: PostgresServer
beforeAll(async () => {
  server = await startPostgres({ fsync: false })
})
afterAll(() => server?.stop())

// A busy machine is late with connections and locks; what that does to a store has tests of its own.
const patient = { durability: 'normal', busyTimeout: 120_000 } as const
const cases = testStore(async options => {
  const url = await server.createDatabase()
  const open = (more = options) => openStore(url, { ...patient, ...more })
  const store = await open()
  return { store, again: open, dispose: () => store.close() }
})
for (const { name, run } of cases) test(name, run)

const user = (text: string) => ({ kind: 'user', content: text }) as const
const quick = { ...patient, secrets: {} } as const

test('many processes open an empty database at once and all find one schema', async () => {
  const url = await server.createDatabase()
  const stores = await Promise.all(Array.from({ length: 12 }, () => openStore(url, quick)))
  const session = Session.fromUserMessage('hello')
  await stores[0]?.sessions.put(session)
  for (const store of stores) expect((await store.sessions.row(session.id)).length).toBe(1)
  await Promise.all(stores.map(store => store.close()))
})

test('two stores that create one id at once do not both believe they were first', async () => {
  const url = await server.createDatabase()
  const drivers = await Promise.all([postgresDriver(url), postgresDriver(url)])
  for (let round = 0; round < 30; round++) {
    const id = `same-${round}`
    const found: (SessionRow | undefined)[] = []
    await Promise.all(
      drivers.map((driver, i) =>
        driver.commit({ sessions: [id], runs: [], entries: [] }, unit => {
          found[i] = unit.session(id)
          const lineage = Session.create('empty').lineage
          const made = { id, head: null, length: 0, branch: '', lineage, created: i, updated: i, tags: [] }
          if (!found[i]) unit.setSession(made, [])
        }),
      ),
    )
    expect(found.filter(row => row === undefined).length).toBe(1)
  }
  await Promise.all(drivers.map(driver => driver.close()))
})

test('two stores that put the same new chunks at once both succeed and keep them once', async () => {
  const url = await server.createDatabase()
  const stores = await Promise.all([openStore(url, quick), openStore(url, quick), openStore(url, quick)])
  for (let round = 0; round < 10; round++) {
    let session = Session.fromUserMessage(`round ${round}`)
    for (let i = 0; i < 20; i++) session = session.user(`line ${i}`)
    const forks = session.forks(3)
    await Promise.all(stores.map((store, i) => store.sessions.put(forks[i] as Session)))
    for (const fork of forks) expect((await stores[0]?.sessions.get(fork.id))?.verify().ok).toBe(true)
  }
  const [count] = await server.query<{ count: string }>(url, 'SELECT count(*) FROM openrath.chunk')
  expect(count?.count).toBe(String(10 * 21))
  await Promise.all(stores.map(store => store.close()))
})

test('batches that touch the same sessions in different orders never deadlock', async () => {
  const url = await server.createDatabase()
  const stores = await Promise.all(Array.from({ length: 4 }, () => openStore(url, quick)))
  const sessions = Array.from({ length: 12 }, (_, i) => Session.fromUserMessage(`session ${i}`))
  await Promise.all(sessions.map(session => stores[0]?.sessions.put(session)))
  await Promise.all(
    stores.map(async (store, writer) => {
      for (let round = 0; round < 10; round++) {
        const order = sessions.toSorted(() => Math.random() - 0.5)
        await Promise.all([
          ...order.map(session => store.sessions.append(session.id, [user(`${writer} ${round}`)])),
          store.sessions.tag((order[0] as Session).id, `tag-${round % 3}`),
          store.sessions.put((order[1] as Session).fork()),
        ])
      }
    }),
  )
  for (const session of sessions) expect((await stores[1]?.sessions.row(session.id))?.length).toBe(41)
  const sql = 'SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()'
  expect(await server.query(url, sql)).toEqual([{ deadlocks: '0' }])
  await Promise.all(stores.map(store => store.close()))
})

test('a follower hears of a transaction that commits after later ones, and hears of those at once', async () => {
  const url = await server.createDatabase()
  const store = await openStore(url, quick)
  const slow = Session.fromUserMessage('slow')
  const fast = Session.fromUserMessage('fast')
  await store.sessions.put(slow)
  await store.sessions.put(fast)
  const seen: string[] = []
  const pool = await Pool.open(url, {})
  let { cursor } = await changes(pool, followedSessions, undefined)
  const look = async () => {
    const found = await changes(pool, followedSessions, cursor)
    cursor = found.cursor
    seen.push(...found.rows.map(row => row.id))
  }
  const earlier = new pg.Client({ connectionString: url })
  await earlier.connect()
  await earlier.query('BEGIN')
  await earlier.query('UPDATE openrath.session SET changed = pg_current_xact_id() WHERE id = $1', [slow.id])
  await store.sessions.append(fast.id, [user('overtakes')])
  await look()
  expect(seen).toEqual([fast.id])
  await look()
  await earlier.query('COMMIT')
  await earlier.end()
  await look()
  await look()
  expect(seen).toEqual([fast.id, slow.id])
  await pool.close()
  await store.close()
})

test('a follower far behind reads page by page and misses nothing', async () => {
  const url = await server.createDatabase()
  const store = await openStore(url, quick)
  const pool = await Pool.open(url, {})
  const origin = Session.fromUserMessage('origin')
  let { cursor } = await changes(pool, followedSessions, undefined)
  const forks = origin.forks(2500)
  await Promise.all(forks.map(fork => store.sessions.put(fork)))
  const seen: string[] = []
  for (let rows = [undefined] as unknown[]; rows.length > 0; ) {
    const found = await changes(pool, followedSessions, cursor)
    ;({ cursor, rows } = found)
    seen.push(...found.rows.map(row => row.id))
    expect(found.rows.length).toBeLessThanOrEqual(1000)
  }
  expect(seen.length).toBe(2500)
  expect(new Set(seen)).toEqual(new Set(forks.map(fork => fork.id)))
  await pool.close()
  await store.close()
})

test('a snapshot is cut off behind the newest change', () => {
  expect(cutOff('90:110:90,95,104', 100n)).toBe('90:100:90,95')
  expect(cutOff('105:110:105', 100n)).toBe('100:100:')
  expect(cutOff('90:95:', 100n)).toBe('90:95:')
})

test('neither the url nor any error of the store shows the password', async () => {
  const url = await server.createDatabase()
  const store = await openStore(url, quick)
  expect(store.url).toBe(url.replace(`:${password}`, ''))
  await store.close()
  const wrong = [
    url.replace('lab:', 'nobody:'),
    url.replace(/[^/]+$/, 'absent'),
    url.replace(/127.0.0.1:\d+/, '127.0.0.1:1'),
    url.replace('@', '/@'),
    url.replace('postgres:', 'postgre:'),
    url.replace('127.0.0.1', '127.0.0.1:x'),
    `postgres://127.0.0.1:1/a?password=${password}`,
  ]
  const codes: string[] = []
  for (const address of wrong) {
    const error = await refusalOf(openStore(address, { busyTimeout: 2000, secrets: {} }))
    expect(inspect(error, { depth: 20, showHidden: true })).not.toContain(password)
    codes.push(error.code)
  }
  const unreachable = 'store-unreachable'
  const invalid = 'invalid-argument'
  expect(codes).toEqual(['store-failed', 'store-failed', unreachable, invalid, invalid, invalid, unreachable])
})

test('without the package pg, the error says how to install it', () => {
  using folder = temporaryFolder()
  const root = join(import.meta.dirname, '../..')
  cpSync(join(root, 'src'), join(folder.path, 'src'), { recursive: true })
  mkdirSync(join(folder.path, 'node_modules'))
  for (const name of ['@noble', 'safe-stable-stringify']) {
    symlinkSync(join(root, 'node_modules', name), join(folder.path, 'node_modules', name))
  }
  const program = `import { openStore } from './src/store/open.ts'
    await openStore('postgres://a@127.0.0.1/b').catch(error => console.log(error.code + ': ' + error.message))`
  writeFileSync(join(folder.path, 'package.json'), '{ "type": "module" }')
  writeFileSync(join(folder.path, 'main.ts'), program)
  const printed = execFileSync(process.execPath, ['main.ts'], { cwd: folder.path, encoding: 'utf8' })
  expect(printed).toContain('missing-package: ')
  expect(printed).toContain('npm install pg')
})

test('a store of a newer format is refused and left as it is', async () => {
  const url = await server.createDatabase()
  await (await openStore(url, quick)).close()
  await server.query(url, 'UPDATE openrath.format SET version = 99')
  const error = await refusalOf(openStore(url, quick))
  expect(error.code).toBe('store-newer')
  expect(error.data).toMatchObject({ version: 99 })
  expect(await server.query(url, 'SELECT version FROM openrath.format')).toEqual([{ version: 99 }])
})

test('a schema openrath of another program is refused; an empty one is used', async () => {
  const tables = ['openrath.things (a int)', 'openrath.format (a int)', 'openrath.format (product text)']
  for (const table of tables) {
    const url = await server.createDatabase()
    await server.query(url, `CREATE SCHEMA openrath; CREATE TABLE ${table}`)
    expect((await refusalOf(openStore(url, quick))).code).toBe('store-foreign')
    const sql =
      "SELECT count(*) FROM pg_class WHERE relnamespace = 'openrath'::regnamespace AND relkind = 'r'"
    expect(await server.query(url, sql)).toEqual([{ count: '1' }])
  }
  const url = await server.createDatabase()
  await server.query(url, 'CREATE SCHEMA openrath')
  await (await openStore(url, quick)).close()
})

test('NUL, lone surrogates and texts that look like JSON come back everywhere they may stand', async () => {
  const url = await server.createDatabase()
  const store = await openStore(url, quick)
  const odd = ['a\u0000b', '\ud800 alone', '"quoted"', '\\u0000', 'plain']
  for (const text of odd) {
    const options = { by: text, label: text, extras: { [text]: text } }
    const session = Session.fromUserMessage(text, options).fork(text).append({ kind: 'assistant', text })
    await store.sessions.put(session)
    const back = await store.sessions.get(session.id)
    expect(back.toJSONL()).toBe(session.toJSONL())
    await store.sessions.put(Session.fromUserMessage(text, options))
    for (const filter of [{ by: text }, { label: text }]) {
      expect((await store.sessions.list(filter)).rows.length).toBeGreaterThan(0)
    }
    expect((await refusalOf(store.sessions.get(`${text}${text}`))).code).toBe('unknown-session')
  }
  expect((await store.sessions.list({ by: 'a\u0000b' })).rows.length).toBe(1)

  await store.runs.create({ id: 'run' })
  const log = await store.runs.claim('run', '"owner"', 60_000)
  for (const [i, text] of odd.entries()) {
    const key = `"${i}"`
    await log.append([
      { kind: 'intend', entry: { key, occurrence: 0, kind: '"tool"', request: text } },
      { kind: 'conclude', key, occurrence: 0, outcome: text },
    ])
  }
  const journal = await store.runs.journal('run')
  expect(journal.map(entry => entry.request)).toEqual(odd)
  expect(journal.map(entry => entry.outcome)).toEqual(odd)
  expect((await store.runs.get('run')).owner).toBe('"owner"')
  await store.close()
})

test('a thousand appends share one transaction of seven statements', async () => {
  const url = await server.createDatabase()
  const store = await openStore(url, quick)
  const session = Session.fromUserMessage('many')
  await store.sessions.put(session)
  const sent: string[] = []
  const query = vi.spyOn(pg.Client.prototype, 'query')
  await Promise.all(Array.from({ length: 1000 }, (_, i) => store.sessions.append(session.id, [user(`${i}`)])))
  for (const [given] of query.mock.calls as unknown as [{ text: string } | string][]) {
    sent.push(typeof given === 'string' ? given : given.text)
  }
  query.mockRestore()
  const others = sent.filter(text => !/NOTIFY|set_config|nextval/.test(text))
  expect(others).toHaveLength(7)
  expect((await store.sessions.row(session.id)).length).toBe(1001)
  await store.close()
})

test('a chunk whose predecessor is not stored is refused, and nothing of its batch is written', async () => {
  const url = await server.createDatabase()
  const driver = await postgresDriver(url)
  const { lineage } = Session.create('empty')
  const previous = 'a'.repeat(64)
  const head = 'b'.repeat(64)
  const commit = driver.commit({ sessions: ['s'], runs: ['r'], entries: [] }, rows => {
    const chunk = { id: head, previous, index: 1, kind: 'user', body: '{}', blobs: [], session: 's' } as const
    const row = { id: 's', head, length: 2, branch: '', lineage, created: 1, updated: 1, tags: [] }
    rows.setSession(row, [chunk])
  })
  expect((await refusalOf(commit as Promise<void>)).code).toBe('chunk-missing')
  expect(await driver.sessionRow('s')).toBeUndefined()
  expect(await driver.knownChunks([head])).toEqual(new Set())
  await driver.close()
})

test('a store that is opened to read only is held to it by the server, and is not made', async () => {
  const url = await server.createDatabase()
  expect((await refusalOf(openStore(url, { readOnly: true }))).code).toBe('store-read-only')
  await (await openStore(url, quick)).close()
  const driver = await postgresDriver(url, { readOnly: true })
  const commit = driver.commit({ sessions: [], runs: ['r'], entries: [] }, () => {})
  expect((await refusalOf(commit as Promise<void>)).code).toBe('store-read-only')
  await driver.close()
})

test('durability is a setting of every connection', async () => {
  const url = await server.createDatabase()
  for (const [durability, setting] of [['full', 'on'] as const, ['normal', 'off'] as const]) {
    const pool = await Pool.open(url, { durability })
    expect(await pool.query('SHOW synchronous_commit')).toEqual([{ synchronous_commit: setting }])
    await pool.close()
  }
})

test('a row that another process keeps locked makes the store busy after busyTimeout', async () => {
  const url = await server.createDatabase()
  const store = await openStore(url, { ...quick, busyTimeout: 200 })
  const session = Session.fromUserMessage('locked')
  await store.sessions.put(session)
  const other = new pg.Client({ connectionString: url })
  await other.connect()
  await other.query('BEGIN; SELECT FROM openrath.session FOR UPDATE')
  const error = await refusalOf(store.sessions.append(session.id, [user('waits')]))
  expect([error.code, error.retry]).toEqual(['store-busy', 'after'])
  await other.query('ROLLBACK')
  await store.sessions.append(session.id, [user('goes on')])
  await other.end()
  await store.close()
})

test('a text of a hundred thousand different words is found by each of them', async () => {
  const url = await server.createDatabase()
  const store = await openStore(url, quick)
  const words = Array.from({ length: 100_000 }, (_, i) => `word${i}ofquitesomelength`)
  const session = Session.fromUserMessage(words.join(' '))
  await store.sessions.put(session)
  const hits = await store.sessions.search('word3ofquitesomelength word99999ofquitesomelength')
  expect(hits.map(hit => hit.session)).toEqual([session.id])
  await store.close()
})
