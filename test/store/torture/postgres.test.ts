import { afterAll, beforeAll, expect, test } from 'vitest'
import { Session } from '../../../src/session/session.ts'
import { openStore } from '../../../src/store/open.ts'
import { type PostgresServer, startPostgres } from '../../support/postgres.ts'
import { torture } from '../../support/torture.ts'
import { Acknowledged } from './acknowledged.ts'
import { crowd } from './crowd.ts'
import { killRepeatedly } from './kill.ts'

let server: PostgresServer
beforeAll(async () => {
  server = await startPostgres()
})
afterAll(() => server?.stop())

const kills = torture({ short: 12, full: 200 })
const serverKills = torture({ short: 2, full: 4 })

test(`what was acknowledged survives ${kills} kills of the writer and ${serverKills} of the server`, async () => {
  const url = await server.createDatabase()
  const acknowledged = new Acknowledged()
  let restarts = Promise.resolve()
  let begun = 0
  let killed = 0
  const restart = async () => {
    await server.kill()
    killed++
    await server.start()
  }
  const writing = await killRepeatedly({
    url,
    kills,
    lanes: 3,
    acknowledged,
    // Only `full` outlives the server; see docs/store-postgres.md.
    durability: 'full',
    onKill(count) {
      const isTime = count % Math.floor(kills / (serverKills + 1)) === 0
      if (isTime && begun < serverKills) {
        begun++
        restarts = restarts.then(restart)
      }
    },
  }).finally(() => restarts)
  console.log(
    `${kills} kills, ${writing} of them while writing, ${killed} of the server, ${acknowledged.count} acknowledgements`,
  )
  expect(killed).toBe(serverKills)
  expect(writing).toBeGreaterThan(kills * 0.7)
  await using store = await openStore(url, { secrets: {} })
  expect(await acknowledged.problems(store)).toEqual([])
  await store.sessions.put(Session.fromUserMessage('still working'), { tag: 'after' })
  expect((await store.sessions.search('still working')).length).toBe(1)
  expect(await store.gc({ olderThan: 0, dryRun: true })).toMatchObject({ chunks: 0 })
})

const appends = torture({ short: 200, full: 10_000 })
for (const sessions of [1, 4]) {
  test(`4 processes append ${appends} chunks each to ${sessions} session(s): nothing is lost`, async () => {
    const url = await server.createDatabase()
    expect(await crowd(url, { sessions, processes: 4, appends })).toEqual([])
  })
}
