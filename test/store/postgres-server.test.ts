import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { RathError } from '../../src/base/errors.ts'
import { Session } from '../../src/session/index.ts'
import { openStore } from '../../src/store/open.ts'
import { type PostgresServer, startPostgres } from '../support/postgres.ts'
import { startProxy } from '../support/proxy.ts'

let server: PostgresServer
beforeAll(async () => {
  server = await startPostgres()
})
afterAll(() => server?.stop())

const user = (text: string) => ({ kind: 'user', content: text }) as const

test('a server that is killed and started again in mid-work has everything it acknowledged, and work goes on', async () => {
  const url = await server.createDatabase()
  const store = await openStore(url, { secrets: {} })
  const sessions = Array.from({ length: 4 }, (_, i) => Session.fromUserMessage(`session ${i}`))
  await Promise.all(sessions.map(session => store.sessions.put(session)))
  const told = new Map<string, number>()
  using _ = store.sessions.subscribe(({ session }) => told.set(session.id, session.length))

  const acknowledged = sessions.map(() => [] as string[])
  const refused = new Set<string>()
  let working = true
  const writers = sessions.flatMap((session, i) =>
    [0, 1, 2].map(async writer => {
      for (let n = 0; working; n++) {
        const text = `${i} ${writer} ${n}`
        try {
          await store.sessions.append(session.id, [user(text)])
          acknowledged[i]?.push(text)
        } catch (error) {
          if (!(error instanceof RathError)) throw error
          refused.add(error.code)
          await sleep(20)
        }
      }
    }),
  )
  const count = () => acknowledged.flat().length
  const until = async (enough: number) => {
    while (count() < enough) await sleep(5)
  }
  await until(50)
  for (let round = 0; round < 3; round++) {
    await server.kill()
    const before = count()
    await server.start()
    await until(before + 50)
  }
  working = false
  await Promise.all(writers)

  expect([...refused].filter(code => code !== 'store-unreachable' && code !== 'store-busy')).toEqual([])
  for (const [i, session] of sessions.entries()) {
    const kept = await store.sessions.get(session.id)
    expect(kept.verify().ok).toBe(true)
    const texts = new Set(kept.chunks.map(chunk => chunk.text))
    expect(acknowledged[i]?.filter(text => !texts.has(text))).toEqual([])
    // The follower has found the server again, too.
    while (told.get(session.id) !== kept.length) await sleep(20)
  }
  await store.close()
})

test('a server that cannot be reached is named, with what to do', async () => {
  const url = await server.createDatabase()
  const store = await openStore(url, { secrets: {} })
  await store.sessions.put(Session.fromUserMessage('before'))
  await server.kill()
  for (const work of [store.sessions.list(), store.sessions.put(Session.fromUserMessage('while'))]) {
    const error = await work.catch((reason: unknown) => reason)
    expect(error).toMatchObject({ code: 'store-unreachable', retry: 'after' })
    expect((error as Error).message).toMatch(/ECONNREFUSED|terminated|ECONNRESET/)
  }
  await server.start()
  expect((await store.sessions.list()).rows.length).toBe(1)
  await store.sessions.put(Session.fromUserMessage('after'))
  await store.close()
})

test('a connection that breaks before the commit is replaced, and nobody notices', async () => {
  using proxy = await startProxy(server.port)
  const url = (await server.createDatabase()).replace(String(server.port), String(proxy.port))
  const store = await openStore(url, { secrets: {} })
  const session = Session.fromUserMessage('first')
  await store.sessions.put(session)
  for (let i = 0; i < 3; i++) {
    proxy.cutOn('BEGIN')
    await store.sessions.append(session.id, [user(`${i}`)])
  }
  expect((await store.sessions.row(session.id)).length).toBe(4)
  await store.close()
})

test('a connection that breaks during the commit says that its fate is unknown; putting again is safe', async () => {
  using proxy = await startProxy(server.port)
  const url = (await server.createDatabase()).replace(String(server.port), String(proxy.port))
  const store = await openStore(url, { secrets: {} })
  await store.sessions.put(Session.fromUserMessage('first'))
  for (const deliver of [true, false]) {
    const session = Session.fromUserMessage('maybe')
    proxy.cutOn('COMMIT\u0000', { deliver })
    const error = await store.sessions.put(session).catch((reason: unknown) => reason)
    expect(error).toMatchObject({ code: 'store-unreachable', retry: 'after', data: { fate: 'unknown' } })
    expect((error as Error).message).toContain('may or may not have been kept')
    await store.sessions.put(session)
    expect((await store.sessions.get(session.id)).head).toBe(session.head)
  }
  expect((await store.sessions.list()).rows.length).toBe(3)
  await store.close()
})

test('a follower is told again after its connection broke', async () => {
  using proxy = await startProxy(server.port)
  const direct = await server.createDatabase()
  const follower = await openStore(direct.replace(String(server.port), String(proxy.port)), { secrets: {} })
  const writer = await openStore(direct, { secrets: {} })
  const session = Session.fromUserMessage('followed')
  await writer.sessions.put(session)
  let length = 0
  using _ = follower.sessions.subscribe(change => {
    length = change.session.length
  })
  await follower.sessions.list()
  for (let i = 2; i < 5; i++) {
    await writer.sessions.append(session.id, [user(`${i}`)])
    while (length !== i) await sleep(5)
    await server.query(
      direct,
      "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE 'LISTEN%'",
    )
  }
  await follower.close()
  await writer.close()
})
