import { execFileSync } from 'node:child_process'
import { cpSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { inspect } from 'node:util'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { RathError } from '../../src/base/errors.ts'
import { localMemory } from '../../src/memory/drivers/local/local-memory.ts'
import { postgresMemory } from '../../src/memory/drivers/postgres/driver.ts'
import { Session } from '../../src/session/index.ts'
import { openStore } from '../../src/store/open.ts'
import { testMemory } from '../../src/testing/memory.ts'
import { refusalOf } from '../session/make.ts'
import { temporaryFolder } from '../store/folder.ts'
import { type PostgresServer, password, startPostgres } from '../support/postgres.ts'

let server: PostgresServer
let url: string
beforeAll(async () => {
  server = await startPostgres({ fsync: false })
  url = await server.createDatabase()
})
afterAll(() => server?.stop())

let names = 0
const spec = () => ({ name: `case-${++names}` })
const env = {
  get OPENRATH_MEMORY_URL() {
    return url
  },
}
const backend = postgresMemory({ env })

describe('the conformance suite', () => {
  for (const { name, run } of testMemory(backend, { spec })) test(name, run)
})

test('what is found, in which order and with which scores is what the local backend finds', async () => {
  using folder = temporaryFolder()
  await using local = await localMemory().open({ path: folder.path })
  await using store = await backend.open(spec())
  const subjects = [
    'the port of the proxy',
    'tea in the morning',
    'the billing service',
    '数据库密码',
    'getUserName in v1.3',
  ]
  const entries = Array.from({ length: 200 }, (_, i) => ({
    text: `${subjects[i % 5]} and ${subjects[(i * 7 + 3) % 5]} number ${i % 17}, said ${i % 3 ? 'once' : 'again and again'}`,
    scope: i % 4 ? 'user/ada' : 'agent',
    at: 1000 + i,
    source: i % 2 ? { series: `talk ${Math.floor(i / 40)}`, index: i } : {},
  }))
  for (const one of [local, store]) await one.write(entries)
  const queries = [
    'billing service port',
    'Which port does the proxy have?',
    '数据库',
    'getUserName number 5',
    'tea again',
    'please tell me when the tea was, thanks',
    '请问数据库的密码是什么时候改的？',
    'kestrel certificate of the billing service',
  ]
  for (const query of queries) {
    for (const filter of [{}, { scope: 'agent' }]) {
      const options = { ...filter, floor: 0, limit: 20 }
      const [expected, found] = await Promise.all([local.find(query, options), store.find(query, options)])
      const shown = (hits: readonly { text: string; score: number }[]) =>
        hits.map(hit => [hit.text, Number(hit.score.toFixed(4))])
      expect(expected.hits.length).toBeGreaterThan(3)
      expect(shown(found.hits), `${query} ${JSON.stringify(filter)}`).toEqual(shown(expected.hits))
    }
  }
})

test('memories lie beside a store in one database, and neither minds the other', async () => {
  const both = await server.createDatabase()
  await using memory = await postgresMemory({ url: both }).open()
  await memory.write([{ text: 'Tea, not coffee.' }])
  await using store = await openStore(both, { secrets: {} })
  const session = Session.fromUserMessage('hello')
  await store.sessions.put(session)
  await using again = await postgresMemory({ url: both }).open()
  expect((await again.list()).entries.map(entry => entry.text)).toEqual(['Tea, not coffee.'])
  expect((await store.sessions.get(session.id)).length).toBe(1)
})

test('memories of different names in one database are apart, keys and all', async () => {
  await using one = await backend.open(spec())
  await using other = await backend.open(spec())
  await one.write([{ text: 'The tide is high.', key: 'k' }])
  await other.write([{ text: 'The tide is low.', key: 'k' }])
  expect((await one.find('tide')).hits.map(hit => hit.text)).toEqual(['The tide is high.'])
  expect((await other.find('tide')).hits.map(hit => hit.text)).toEqual(['The tide is low.'])
  expect(await one.forget({ scope: 'agent' })).toBe(1)
  expect((await other.list()).entries).toHaveLength(1)
})

test('a pool that was given is used and stays open', async () => {
  const pool = new pg.Pool({ connectionString: url, max: 2 })
  const store = await postgresMemory({ pool }).open(spec())
  await store.write([{ text: 'The tide is high.' }])
  await store.close()
  expect((await pool.query('SELECT 1 AS one')).rows).toEqual([{ one: 1 }])
  await pool.end()
})

test('connections that broke are replaced unnoticed', async () => {
  const own = await server.createDatabase()
  await using store = await postgresMemory({ url: own }).open()
  await store.write([{ text: 'The tide is high.' }])
  const cut =
    'SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()'
  await server.query(own, cut)
  expect((await store.find('tide')).hits).toHaveLength(1)
  await server.query(own, cut)
  await store.write([{ text: 'The moon is full.' }])
  expect((await store.list()).entries).toHaveLength(2)
})

test('a turn that was forgotten does not come back when its session is committed again', async () => {
  await using store = await backend.open(spec())
  const session = Session.fromUserMessage('My salary is ninety thousand.').user('And tea, please.')
  const { written } = await store.commit(session)
  expect(await store.forget(written[0]?.id as string)).toBe(1)
  expect(await store.forget({ scope: written[1]?.scope as string, category: 'turn' })).toBe(1)
  expect((await store.commit(session)).written).toEqual([])
  expect((await store.commit(session, { scope: 'team' })).written).toHaveLength(2)
})

test('a server without pgvector finds by words, and says so', async () => {
  const embed = { model: 'test', embed: async (texts: readonly string[]) => texts.map(() => [1, 0]) }
  const [found] = await server.query<{ there: boolean }>(
    url,
    "SELECT EXISTS (SELECT FROM pg_available_extensions WHERE name = 'vector') AS there",
  )
  if (found?.there)
    return console.info('This server has pgvector: what happens without it is not shown here.')
  console.info('This server has no pgvector: its half of the PostgreSQL memory is not shown here.')
  await using store = await postgresMemory({ env, embed }).open(spec())
  expect(store.capabilities.vectors).toBe(false)
  await store.write([{ text: 'The tide is high.' }])
  const { hits, mode, fellBack } = await store.find('tide')
  expect([hits.length, mode]).toEqual([1, 'words'])
  expect(fellBack).toContain('pgvector')
  expect((await store.find('tide', { mode: 'words' })).fellBack).toBeUndefined()
  const error = await refusalOf(store.find('tide', { mode: 'vectors' }))
  expect(error.code).toBe('memory-unsupported')
  expect(error.message).toContain('pgvector')
})

test('what a verdict rejects is marked, and seen as such by everyone', async () => {
  await using store = await backend.open(spec())
  const root = Session.fromUserMessage('How do we sort it?')
  const branch = root.fork('quick').append({ kind: 'assistant', text: 'With bogosort.' })
  const lane = branch.lineage.lane as string
  await store.write([{ text: 'Bogosort looks promising.', lane }])
  const judged = root.append({ kind: 'verdict', subject: lane, verdict: 'reject', reason: 'too slow' })
  await store.commit(judged)
  const { hits } = await store.find('bogosort')
  expect(hits.map(hit => [hit.text, hit.standing, hit.lane])).toEqual([
    ['Bogosort looks promising.', 'rejected', undefined],
  ])
})

test('forget without a lane reaches every lane; with one, that and those forked off it', async () => {
  await using store = await backend.open(spec())
  const write = () =>
    store.write(['', 'a', 'a/b', 'ab', 'c'].map(lane => ({ text: `on ${lane}`, lane, tags: ['x'] })))
  await write()
  expect(await store.forget({ lane: 'a' })).toBe(2)
  expect(await store.forget({ tags: ['x'] })).toBe(3)
})

test('a server that is killed and started again has everything it acknowledged', async () => {
  await using crashing = await startPostgres()
  const own = await crashing.createDatabase()
  const store = await postgresMemory({ url: own }).open()
  const acknowledged: string[] = []
  let working = true
  const writers = Array.from({ length: 4 }, async (_, writer) => {
    for (let n = 0; working; n++) {
      const text = `entry ${writer} ${n}`
      try {
        await store.write([{ text }])
        acknowledged.push(text)
      } catch (error) {
        expect(error).toBeInstanceOf(RathError)
        expect((error as RathError).code).toMatch(/^store-(unreachable|busy)$/)
        await new Promise(resolve => setImmediate(resolve))
      }
    }
  })
  while (acknowledged.length < 50) await new Promise(resolve => setImmediate(resolve))
  await crashing.kill()
  await crashing.start()
  const enough = acknowledged.length + 20
  while (acknowledged.length < enough) await new Promise(resolve => setImmediate(resolve))
  working = false
  await Promise.all(writers)
  const kept = new Set((await store.list({ limit: 1000 })).entries.map(entry => entry.text))
  expect(acknowledged.filter(text => !kept.has(text))).toEqual([])
  const [{ entries, words } = { entries: '', words: '' }] = await crashing.query<{
    entries: string
    words: string
  }>(own, 'SELECT entries, words FROM openrath_memory.place')
  const [real] = await crashing.query(
    own,
    'SELECT count(*) AS entries, sum(length) AS words FROM openrath_memory.entry',
  )
  expect({ entries, words }).toEqual(real)
  await store.close()
})

test('neither the name nor any error shows the password', async () => {
  await using store = await postgresMemory({ url }).open(spec())
  expect(inspect(store, { depth: 20, showHidden: true })).not.toContain(password)
  const wrong = [
    [url.replace('lab:', 'nobody:'), 'store-failed'],
    [url.replace(/[^/]+$/, 'absent'), 'store-failed'],
    [url.replace(/127.0.0.1:\d+/, '127.0.0.1:1'), 'store-unreachable'],
    [url.replace('postgres:', 'postgre:'), 'invalid-argument'],
  ] as const
  for (const [address, code] of wrong) {
    const error = await refusalOf(postgresMemory({ url: address }).open())
    expect(inspect(error, { depth: 20, showHidden: true })).not.toContain(password)
    expect(error.code).toBe(code)
  }
})

test('a spec holds a name and nothing else', async () => {
  expect((await refusalOf(backend.open({ url }))).message).not.toContain(password)
  for (const name of ['', '../x', 'a/b', 7]) {
    expect((await refusalOf(backend.open({ name }))).code).toBe('invalid-argument')
  }
  expect((await refusalOf(postgresMemory({ env: {} }).open())).message).toContain('OPENRATH_MEMORY_URL')
})

test('a schema of a newer format or of another program is refused and left as it is', async () => {
  const newer = await server.createDatabase()
  await (await postgresMemory({ url: newer }).open()).close()
  await server.query(newer, 'UPDATE openrath_memory.format SET version = 99')
  expect((await refusalOf(postgresMemory({ url: newer }).open())).code).toBe('store-newer')
  const foreign = await server.createDatabase()
  await server.query(foreign, 'CREATE SCHEMA openrath_memory; CREATE TABLE openrath_memory.things (a int)')
  expect((await refusalOf(postgresMemory({ url: foreign }).open())).code).toBe('store-foreign')
  const empty = await server.createDatabase()
  await server.query(empty, 'CREATE SCHEMA openrath_memory')
  await Promise.all(
    Array.from({ length: 6 }, async () => (await postgresMemory({ url: empty }).open()).close()),
  )
})

test('words that another version divided are divided anew when the memory is opened', async () => {
  const own = await server.createDatabase()
  const first = await postgresMemory({ url: own }).open()
  await first.write([{ text: 'The tide is high.' }, { text: '潮水很高。' }])
  await first.close()
  await server.query(
    own,
    "UPDATE openrath_memory.place SET tokenizer = 0; UPDATE openrath_memory.word SET word = word || '?'",
  )
  await using again = await postgresMemory({ url: own }).open()
  expect((await again.find('tide')).hits).toHaveLength(1)
  expect((await again.find('潮水')).hits).toHaveLength(1)
})

test('without the package pg, the error says how to install it', () => {
  using folder = temporaryFolder()
  const root = join(import.meta.dirname, '../..')
  cpSync(join(root, 'src'), join(folder.path, 'src'), { recursive: true })
  mkdirSync(join(folder.path, 'node_modules'))
  for (const name of ['@noble', 'safe-stable-stringify', 'snowball-stemmers']) {
    symlinkSync(join(root, 'node_modules', name), join(folder.path, 'node_modules', name))
  }
  const program = `import { postgresMemory } from './src/memory/drivers/postgres/driver.ts'
    await postgresMemory({ url: 'postgres://a@127.0.0.1/b' }).open().catch(error => console.log(error.code + ': ' + error.message))`
  writeFileSync(join(folder.path, 'package.json'), '{ "type": "module" }')
  writeFileSync(join(folder.path, 'main.ts'), program)
  const printed = execFileSync(process.execPath, ['main.ts'], { cwd: folder.path, encoding: 'utf8' })
  expect(printed).toContain('missing-package: ')
  expect(printed).toContain('npm install pg')
})
