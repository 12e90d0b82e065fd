import { afterAll, beforeAll, expect, test } from 'vitest'
import { Session } from '../../../src/session/session.ts'
import { openStore } from '../../../src/store/open.ts'
import { type PostgresServer, startPostgres } from '../../support/postgres.ts'
import { Acknowledged } from './acknowledged.ts'
import { crowd } from './crowd.ts'
import { killRepeatedly } from './kill.ts'

let server: PostgresServer
beforeAll(async () => {
  server = await startPostgres()
})
afterAll(() => server?.stop())

test('what was acknowledged survives 200 kills of the writer and 4 of the server', async () => {
  const url = await server.createDatabase()
  const acknowledged = new Acknowledged()
  let restarts = Promise.resolve()
  let killed = 0
  const restart = async () => {
    await server.kill()
    killed++
    await server.start()
  }
  const writing = await killRepeatedly({
    url,
    kills: 200,
    lanes: 3,
    acknowledged,
    // Only `full` outlives the server; see docs/store-postgres.md.
    durability: 'full',
    onKill(count) {
      if (count % 40 === 0 && count < 200) restarts = restarts.then(restart)
    },
  }).finally(() => restarts)
  console.log(
    `200 kills, ${writing} of them while writing, ${killed} of the server, ${acknowledged.count} acknowledgements`,
  )
  expect(killed).toBe(4)
  expect(writing).toBeGreaterThan(150)
  await using store = await openStore(url, { secrets: {} })
  expect(await acknowledged.problems(store)).toEqual([])
  await store.sessions.put(Session.fromUserMessage('still working'), { tag: 'after' })
  expect((await store.sessions.search('still working')).length).toBe(1)
  expect(await store.gc({ olderThan: 0, dryRun: true })).toMatchObject({ chunks: 0 })
}, 600_000)

for (const sessions of [1, 4]) {
  test(`4 processes append 10,000 chunks each to ${sessions} session(s): nothing is lost`, async () => {
    const url = await server.createDatabase()
    expect(await crowd(url, { sessions, processes: 4, appends: 10_000 })).toEqual([])
  }, 600_000)
}
