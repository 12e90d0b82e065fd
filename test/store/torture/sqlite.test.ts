import { join } from 'node:path'
import { expect, test } from 'vitest'
import { Session } from '../../../src/session/session.ts'
import { openStore } from '../../../src/store/open.ts'
import { inPrivateMounts, mountProblem } from '../../support/mounts.ts'
import { torture } from '../../support/torture.ts'
import { temporaryFolder } from '../folder.ts'
import { Acknowledged } from './acknowledged.ts'
import { crowd } from './crowd.ts'
import { killRepeatedly } from './kill.ts'

const kills = torture({ short: 12, full: 200 })

test(`what was acknowledged survives ${kills} kills of the writer, and everything verifies`, async () => {
  using folder = temporaryFolder()
  const url = `sqlite:${folder.path}/rath.db`
  const acknowledged = new Acknowledged()
  const writing = await killRepeatedly({ url, kills, lanes: 3, acknowledged })
  console.log(`${kills} kills, ${writing} of them while writing, ${acknowledged.count} acknowledgements`)
  expect(writing).toBeGreaterThan(kills * 0.7)
  await using store = await openStore(url, { secrets: {} })
  expect(await acknowledged.problems(store)).toEqual([])
  await store.sessions.put(Session.fromUserMessage('still working'), { tag: 'after' })
  expect((await store.sessions.search('still working')).length).toBe(1)
  expect(await store.gc({ olderThan: 0, dryRun: true })).toMatchObject({ chunks: 0 })
})

test('what was acknowledged survives a disk that fills up and writers that are killed on it', context => {
  const problem = mountProblem()
  if (problem) return context.skip(problem)
  using folder = temporaryFolder()
  const script = 'mount -t tmpfs -o size=3m tmpfs "$1"; exec "$2" "$3" "$1"'
  const file = join(import.meta.dirname, 'full-disk.ts')
  const { status, output } = inPrivateMounts(script, folder.path, process.execPath, file)
  expect(output).toMatch(/^filled 5 times, \d+ acknowledgements, 0 problems, went on after$/m)
  expect(status).toBe(0)
})

const appends = torture({ short: 200, full: 10_000 })
for (const sessions of [1, 4]) {
  test(`4 processes append ${appends} chunks each to ${sessions} session(s): nothing is lost`, async () => {
    using folder = temporaryFolder()
    expect(await crowd(`sqlite:${folder.path}/rath.db`, { sessions, processes: 4, appends })).toEqual([])
  })
}
