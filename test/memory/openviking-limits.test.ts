import { afterAll, beforeAll, expect, onTestFinished, test, vi } from 'vitest'
import { openvikingBackend } from '../../src/memory/drivers/openviking/driver.ts'
import { Session } from '../../src/session/index.ts'
import { refusalOf } from '../session/make.ts'
import { startOpenViking, type VikingStandIn } from './stand-in/openviking.ts'

let server: VikingStandIn
beforeAll(async () => {
  server = await startOpenViking()
})
afterAll(() => server?.[Symbol.asyncDispose]())

const env = { OPEN_VIKING_API_KEY: 'test-key' }
const backend = openvikingBackend({ env, sleep: async () => {} })
let users = 0
const open = () =>
  backend.open({ url: server.url, account: 'lab', user: `limits-${++users}`, extract: false })

test('a session of more turns than the server takes at once is committed whole, and twice writes nothing twice', async () => {
  await using store = await open()
  let session = Session.fromUserMessage('Turn 0.')
  for (let i = 1; i < 300; i++) session = session.user(`Turn ${i}.`)
  expect((await store.commit(session)).written).toHaveLength(300)
  expect((await store.commit(session)).written).toEqual([])
})

test('to forget what waits on a lane ends nothing, since nothing waits here', async () => {
  await using store = await open()
  const [entry] = await store.write([{ text: 'The gate is green.' }])
  expect(await store.forget({ lane: '~branch' })).toBe(0)
  expect(await store.read(entry?.id as string)).toMatchObject({ text: 'The gate is green.' })
})

test('a list takes limits from 1 to 1,000 and refuses others', async () => {
  await using store = await open()
  for (const limit of [0, -1, 1.5, Number.NaN, 1_001])
    expect((await refusalOf(store.list({ limit }))).message).toContain(
      'limit is a whole number from 1 to 1,000',
    )
})

test('an answer of another shape is an error that shows it, and no crash', async () => {
  await using store = await open()
  await store.write([{ text: 'The gate is green.' }])
  for (const raw of ['{"result": null}', '{"ok": true}', '{"result": ["what"]}']) {
    server.fail(1, { status: 200, raw })
    const error = await refusalOf(store.find('gate'))
    expect([error.code, error.message]).toEqual([
      'store-failed',
      expect.stringContaining('POST /api/v1/search/find'),
    ])
  }
  server.fail(1, { status: 200, raw: '{"result": {"matches": 5}}' })
  expect((await refusalOf(store.read('abc'))).code).toBe('store-failed')
  server.fail(1, { status: 200, raw: '{"result": {}}' })
  expect((await refusalOf(store.list())).code).toBe('store-failed')
})

test('a server that does not answer is asked once, and for less long where an agent waits for it', async () => {
  const limits: number[] = []
  const spy = vi.spyOn(AbortSignal, 'timeout').mockImplementation(ms => {
    limits.push(ms)
    return AbortSignal.abort(new DOMException('It took too long.', 'TimeoutError'))
  })
  onTestFinished(() => spy.mockRestore())
  const silent: typeof fetch = async (url, options) => {
    if (String(url).endsWith('/health')) return new Response('{"result": {}}')
    throw options?.signal?.reason
  }
  const late = openvikingBackend({ env, sleep: async () => {}, fetch: silent })
  await using store = await late.open({ url: server.url })
  limits.length = 0
  expect((await refusalOf(store.find('gate'))).code).toBe('store-unreachable')
  expect((await refusalOf(store.write([{ text: 'The gate is green.' }]))).code).toBe('store-unreachable')
  expect(limits).toEqual([30_000, 300_000])
})

test('a turn that the session forgot, by its record, does not come back when it is committed again', async () => {
  await using store = await open()
  const session = Session.fromUserMessage('My salary is ninety thousand.').user('And tea, please.')
  const { written } = await store.commit(session)
  const id = written[0]?.id as string
  await store.forget(id)
  const later = session
    .append({ kind: 'memory', op: 'forget', store: store.name, entries: [id] })
    .user('Thanks.')
  expect((await store.commit(later)).written.map(({ text }) => text)).toEqual(['user: Thanks.'])
})
