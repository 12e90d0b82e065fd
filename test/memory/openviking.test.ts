import { createServer } from 'node:http'
import { inspect } from 'node:util'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { openvikingBackend } from '../../src/memory/drivers/openviking/driver.ts'
import type { MemoryStore } from '../../src/memory/spec.ts'
import { Session } from '../../src/session/index.ts'
import { testMemory } from '../../src/testing/memory.ts'
import { refusalOf } from '../session/make.ts'
import { startOpenViking, type VikingStandIn } from './stand-in/openviking.ts'

let server: VikingStandIn
beforeAll(async () => {
  server = await startOpenViking()
})
afterAll(() => server?.[Symbol.asyncDispose]())

const waits: number[] = []
beforeEach(() => {
  waits.length = 0
})
const env = { OPEN_VIKING_API_KEY: 'test-key' }
const backend = openvikingBackend({
  env,
  random: () => 0.5,
  sleep: async ms => {
    waits.push(ms)
  },
})

let users = 0
const spec = () => ({ url: server.url, account: 'lab', user: `user-${++users}` })

const exceptions = { 'finding by words says so': 'OpenViking finds by meaning only and refuses mode: words' }

describe('the conformance suite, on a stand-in for the server', () => {
  for (const { name, run } of testMemory(backend, { spec, except: exceptions })) test(name, run)
})

describe('the conformance suite, without extraction', () => {
  const quiet = () => ({ ...spec(), extract: false })
  for (const { name, run } of testMemory(backend, { spec: quiet, except: exceptions })) {
    if (/session|commit/.test(name)) test(name, run)
  }
})

test('every request says who asks', async () => {
  const { user, ...rest } = spec()
  await using store = await backend.open({ ...rest, user })
  const before = server.requests.length
  await store.write([{ text: 'Tea, not coffee.', scope: 'user/ada' }])
  const seen = server.requests.slice(before)
  expect(seen.length).toBeGreaterThan(0)
  for (const { headers } of seen) {
    expect(headers['x-api-key']).toBe('test-key')
    expect(headers['x-openviking-account']).toBe('lab')
    expect(headers['x-openviking-user']).toBe(user)
  }
})

test('an entry is a file whose place says its scope and category, and whose text comes first', async () => {
  const given = spec()
  await using store = await backend.open(given)
  const before = server.requests.length
  const [kept] = await store.write([
    { text: 'Tea, not coffee.', scope: 'user/ada b', category: 'preference' },
  ])
  const write = server.requests.slice(before).findLast(request => request.path.endsWith('/batch-write'))
  expect(write?.body).toMatchObject({
    root_uri: 'viking://~/memories/openrath',
    wait: true,
    operations: [
      { mode: 'create', uri: `viking://~/memories/openrath/user/ada=20b/preference/${kept?.id}.md` },
    ],
  })
  const { operations } = (write?.body ?? {}) as { operations: { content: string }[] }
  expect(operations[0]?.content).toMatch(/^Tea, not coffee\.\n<!-- openrath \{.*\} -->\n$/)
})

describe('when the server is busy', () => {
  let store: MemoryStore
  beforeEach(async () => {
    store = await backend.open(spec())
    await store.write([{ text: 'The tide is high.' }])
  })

  test('it is asked again after as long as it says', async () => {
    server.fail(2, { status: 429, code: 'RESOURCE_EXHAUSTED', headers: { 'retry-after': '7' } })
    expect((await store.find('tide')).hits).toHaveLength(1)
    expect(waits).toEqual([7000, 7000])
    server.fail(1, { status: 503, code: 'UNAVAILABLE' })
    await store.write([{ text: 'The moon is full.' }])
    expect(waits).toEqual([7000, 7000, 250])
  })

  test('it is not asked for ever, nor waited for longer than a minute', async () => {
    server.fail(5, { status: 503, code: 'UNAVAILABLE', message: 'starting' })
    const error = await refusalOf(store.find('tide'))
    expect([error.code, error.retry]).toEqual(['store-unreachable', 'after'])
    expect(waits).toEqual([250, 500, 1000, 2000])
    server.fail(1, { status: 429, code: 'RESOURCE_EXHAUSTED', headers: { 'retry-after': '3600' } })
    expect((await refusalOf(store.find('tide'))).code).toBe('store-busy')
    expect(waits).toHaveLength(4)
  })

  test('a request that may have arrived is sent again only when that does no harm', async () => {
    server.fail(1, { status: 0, hangUp: true })
    expect((await store.find('tide')).hits).toHaveLength(1)
    server.fail(1, { status: 0, hangUp: true })
    const error = await refusalOf(store.write([{ text: 'Written once at most.' }]))
    expect(error.code).toBe('store-unreachable')
    expect((await store.list()).entries).toHaveLength(1)
  })

  test('cancelling ends the wait', async () => {
    const abort = new AbortController()
    const patient = openvikingBackend({ env })
    const same = await patient.open(spec())
    server.fail(1, { status: 429, code: 'RESOURCE_EXHAUSTED', headers: { 'retry-after': '30' } })
    const finding = refusalOf(same.find('tide', { signal: abort.signal }))
    setImmediate(() => abort.abort())
    expect((await finding).code).toBe('cancelled')
  })
})

test('what the server refuses becomes an error that says what to do', async () => {
  await using store = await backend.open(spec())
  const answers = [
    [400, 'INVALID_ARGUMENT', 'invalid-argument'],
    [401, 'UNAUTHENTICATED', 'store-failed'],
    [403, 'PERMISSION_DENIED', 'store-failed'],
    [409, 'CONFLICT', 'store-busy'],
    [410, 'SESSION_EXPIRED', 'store-failed'],
    [412, 'FAILED_PRECONDITION', 'store-failed'],
    [500, 'EMBEDDING_FAILED', 'store-failed'],
    [500, 'VLM_FAILED', 'store-failed'],
    [501, 'UNIMPLEMENTED', 'memory-unsupported'],
    [504, 'DEADLINE_EXCEEDED', 'store-busy'],
  ] as const
  for (const [status, code, ours] of answers) {
    server.fail(1, { status, code, message: `as the server says ${code}` })
    const error = await refusalOf(store.find('tide'))
    expect([code, error.code]).toEqual([code, ours])
    expect(error.message).toContain(`as the server says ${code}`)
    expect(error.data).toMatchObject({ code, status })
  }
  server.fail(1, { status: 502, raw: '<html>Bad gateway</html>' })
  const error = await refusalOf(store.find('tide'))
  expect(error.code).toBe('store-failed')
  expect(error.message).toContain('Bad gateway')
  server.fail(1, { status: 200, raw: '<html>Welcome</html>' })
  expect((await refusalOf(store.find('tide'))).code).toBe('store-failed')
})

test('the key is in no error, no spec, and goes to no other server', async () => {
  let reached = 0
  const elsewhere = createServer((_, response) => {
    reached++
    response.end('{}')
  })
  await new Promise<void>(resolve => elsewhere.listen(0, '127.0.0.1', resolve))
  const { port } = elsewhere.address() as { port: number }
  await using store = await backend.open(spec())
  server.fail(1, { status: 302, headers: { location: `http://127.0.0.1:${port}/` } })
  const redirected = await refusalOf(store.write([{ text: 'x' }]))
  expect(reached).toBe(0)
  elsewhere.close()
  const wrong = openvikingBackend({ env: { OPEN_VIKING_API_KEY: 'a-wrong-key' }, sleep: async () => {} })
  const refused = await refusalOf((await wrong.open(spec())).list())
  expect(refused.message).toContain('Check OPEN_VIKING_API_KEY')
  const given = await refusalOf(backend.open({ ...spec(), apiKey: 'test-key' }))
  expect(given.message).toContain('The key goes into OPEN_VIKING_API_KEY')
  for (const error of [redirected, refused, given]) {
    expect(inspect(error, { depth: 20 })).not.toMatch(/test-key|a-wrong-key/)
  }
})

test('a spec that cannot be is refused', async () => {
  for (const bad of [
    { url: 'ftp://x' },
    { url: 'http://user:secret@host' },
    { url: 3 },
    { floor: 2 },
    { extract: 'no' },
  ]) {
    const error = await refusalOf(backend.open(bad))
    expect(error.code).toBe('invalid-argument')
  }
  expect((await refusalOf(backend.open({}))).message).toContain('Set OPEN_VIKING_URL')
  const nowhere = await refusalOf(backend.open({ url: 'http://127.0.0.1:1' }))
  expect(nowhere.code).toBe('store-unreachable')
})

describe('a commit', () => {
  const session = () =>
    Session.fromUserMessage('Where is the ladder?').append({
      kind: 'assistant',
      text: 'Behind the greenhouse.',
      by: 'helper',
    })

  test('tells the session to the server and waits for what it draws from it', async () => {
    await using store = await backend.open(spec())
    const before = server.requests.length
    const { written } = await store.commit(session())
    const paths = server.requests.slice(before).map(({ method, path }) => `${method} ${path}`)
    const told = server.requests.slice(before).find(({ path }) => path.endsWith('/messages/batch'))
    expect(told?.body).toMatchObject({
      messages: [
        { role: 'user', content: 'user: Where is the ladder?' },
        { role: 'assistant', content: 'helper: Behind the greenhouse.', peer_id: 'helper' },
      ],
    })
    expect(paths.filter(path => path.startsWith('GET /api/v1/tasks/'))).toHaveLength(2)
    const drawn = written.filter(entry => entry.category === 'events')
    expect(drawn.map(entry => entry.text)).toEqual([
      'Noted: user: Where is the ladder?',
      'Noted: helper: Behind the greenhouse.',
    ])
    expect(drawn[0]).toMatchObject({ scope: 'user', standing: 'adopted', version: 1 })
    expect(await store.read(drawn[0]?.uri as string)).toEqual(drawn[0])
  })

  test('does without extraction where it is turned off', async () => {
    await using store = await backend.open({ ...spec(), extract: false })
    const before = server.requests.length
    const { written } = await store.commit(session())
    expect(written.map(entry => entry.category)).toEqual(['turn', 'turn'])
    expect(server.requests.slice(before).filter(({ path }) => path.includes('/sessions'))).toEqual([])
  })

  test('of more than a hundred messages tells them in parts', async () => {
    await using store = await backend.open(spec())
    let long = Session.create('empty')
    for (let i = 0; i < 120; i++) long = long.append({ kind: 'user', text: `message ${i}` })
    const before = server.requests.length
    await store.commit(long)
    const told = server.requests.slice(before).filter(({ path }) => path.endsWith('/messages/batch'))
    expect(told.map(({ body }) => (body as { messages: unknown[] }).messages.length)).toEqual([100, 20])
  })

  test('whose extraction fails keeps none of its turns and says why', async () => {
    await using lonely = await startOpenViking()
    lonely.breakExtraction()
    await using store = await backend.open({ ...spec(), url: lonely.url })
    const error = await refusalOf(store.commit(session()))
    expect(error.code).toBe('store-failed')
    expect(error.message).toContain('VLM_FAILED')
    expect(error.message).toContain('extract: false')
    expect((await store.list()).entries).toEqual([])
  })
})

test('what the server or a person wrote beside ours is found, read and forgotten, but not updated', async () => {
  await using store = await backend.open(spec())
  const { written } = await store.commit(Session.fromUserMessage('The heron nests on the roof.'))
  const drawn = written.find(entry => entry.category === 'events')
  const id = drawn?.id as string
  expect((await store.find('heron', { scope: 'user' })).hits.map(hit => hit.id)).toEqual([id])
  const error = await refusalOf(store.update(id, { text: 'x' }))
  expect(error.code).toBe('memory-unsupported')
  expect(await store.forget(id)).toBe(1)
  expect(await store.read(id)).toBeNull()
})

test('an id is no way to files that are no memories', async () => {
  await using store = await backend.open(spec())
  await store.commit(Session.fromUserMessage('The heron nests on the roof.'))
  const before = server.requests.length
  const ids = [
    '~/sessions/x.md',
    '~/memories/../sessions/x.md',
    'user/somebody/memories/profile.md',
    'temp/x',
  ]
  for (const path of ids) {
    expect(await store.read(`viking.${encodeURIComponent(path).replaceAll('%', '=')}`), path).toBeNull()
  }
  expect(server.requests.slice(before).filter(({ path }) => /stat|read/.test(path))).toEqual([])
})

test('forget without saying what is refused', async () => {
  await using store = await backend.open(spec())
  await store.write([{ text: 'stays' }])
  expect((await refusalOf(store.forget({}))).code).toBe('invalid-argument')
  expect((await store.list()).entries).toHaveLength(1)
})

test('a batch that is too large for the server is refused before anything is written', async () => {
  await using store = await backend.open(spec())
  const many = Array.from({ length: 257 }, (_, i) => ({ text: `${i}` }))
  expect((await refusalOf(store.write(many))).code).toBe('invalid-argument')
  expect((await store.list()).entries).toEqual([])
})
