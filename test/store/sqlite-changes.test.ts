import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { Session } from '../../src/session/session.ts'
import { sqliteDriver } from '../../src/store/drivers/sqlite/driver.ts'
import { createStore } from '../../src/store/store.ts'
import { user } from '../session/make.ts'
import { temporaryFolder } from './folder.ts'

async function openDriver() {
  const folder = temporaryFolder()
  const driver = await sqliteDriver(join(folder.path, 'rath.db'), { durability: 'normal' })
  const store = createStore(driver)
  onTestFinished(async () => {
    await store.close()
    folder[Symbol.dispose]()
  })
  /** All ids that are told behind a cursor, page by page, and where that ends. */
  const told = async (cursor: string) => {
    const ids: string[] = []
    for (let at = cursor; ; ) {
      const page = await driver.sessionChanges.behind(at)
      ids.push(...page.rows.map(row => row.id))
      if (page.rows.length === 0) return { ids, cursor: page.cursor }
      at = page.cursor
    }
  }
  return { driver, store, told }
}

test('changes with and without chunks of their own are told in the order in which they happened', async () => {
  const { driver, store, told } = await openDriver()
  const { cursor } = await driver.sessionChanges.behind(undefined)
  const trunk = await store.sessions.put(Session.fromUserMessage('hello'))
  const first = await store.sessions.put(trunk.fork())
  const other = await store.sessions.put(Session.fromUserMessage('other'))
  const second = await store.sessions.put(trunk.fork())
  expect((await told(cursor)).ids).toEqual([trunk.id, first.id, other.id, second.id])
  await store.sessions.append(first.id, [user('on')])
  const end = await told(cursor)
  expect(end.ids).toEqual([trunk.id, other.id, second.id, first.id])
  expect((await driver.sessionChanges.behind(undefined)).cursor).toBe(end.cursor)
})

test('more changes of either kind than a page holds are all told', async () => {
  const { driver, store, told } = await openDriver()
  const { cursor } = await driver.sessionChanges.behind(undefined)
  const trunk = await store.sessions.put(Session.fromUserMessage('hello'))
  const forks = trunk.forks(1_500)
  await Promise.all(forks.map(fork => store.sessions.put(fork)))
  const long = Array.from({ length: 2_500 }, (_, i) => user(`${i}`))
  const last = await store.sessions.put(Session.create('empty').append(...long))
  const later = trunk.forks(1_500)
  await Promise.all(later.map(fork => store.sessions.put(fork)))
  const { ids } = await told(cursor)
  expect(new Set(ids)).toEqual(new Set([trunk, ...forks, last, ...later].map(session => session.id)))
  expect(ids.indexOf(last.id)).toBeGreaterThan(ids.indexOf(forks.at(-1)?.id as string))
  expect(ids.lastIndexOf(last.id)).toBeLessThan(ids.indexOf(later[0]?.id as string))
})

test('pages about deleted sessions do not hide what comes behind them', async () => {
  const { driver, store, told } = await openDriver()
  const { cursor } = await driver.sessionChanges.behind(undefined)
  const long = Array.from({ length: 1_200 }, (_, i) => user(`${i}`))
  const gone = await store.sessions.put(Session.create('empty').append(...long))
  const kept = await store.sessions.put(Session.fromUserMessage('kept'))
  await store.sessions.delete(gone.id)
  expect((await told(cursor)).ids).toEqual([kept.id])
})

test('a chunk written after the newest one was collected is told to who had come that far', async () => {
  const { driver, store, told } = await openDriver()
  await store.sessions.put(Session.fromUserMessage('stays'))
  const gone = await store.sessions.put(Session.fromUserMessage('a secret that goes'))
  const { cursor } = await driver.sessionChanges.behind(undefined)
  await store.sessions.delete(gone.id)
  expect(await store.gc({ olderThan: 0 })).toMatchObject({ chunks: 1 })
  expect(await store.gc({ olderThan: 0 })).toMatchObject({ chunks: 0, bytes: 0 })
  expect(await driver.knownChunks([gone.head as string])).toEqual(new Set())
  const next = await store.sessions.put(Session.fromUserMessage('comes next'))
  expect((await told(cursor)).ids).toEqual([next.id])
  expect((await store.sessions.search('next')).map(hit => hit.session)).toEqual([next.id])
  expect(await store.sessions.search('secret')).toEqual([])
  expect(await store.gc({ olderThan: 0 })).toMatchObject({ chunks: 0, bytes: 0 })
})
