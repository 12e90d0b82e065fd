import { expect, test } from 'vitest'
import type { StoreDriver } from '../../src/store/driver.ts'
import { checkId, checkTag, resolveName } from '../../src/store/names.ts'
import { checkLimit, listPage } from '../../src/store/page.ts'
import type { SessionRow } from '../../src/store/spec.ts'
import { refusal, refusalOf } from '../session/make.ts'

const rowOf = (id: string, created = 1) => ({ id, created }) as SessionRow

/** A driver that has these session ids and nothing else. */
function driverOf(ids: readonly string[]): StoreDriver {
  const driver: Partial<StoreDriver> = {
    sessionRow: async id => (ids.includes(id) ? rowOf(id) : undefined),
    sessionIds: async (prefix, limit) => ids.filter(id => id.startsWith(prefix)).slice(0, limit),
    tagged: async () => undefined,
    sessionRows: async (_, limit, before) =>
      ids
        .filter(id => before === undefined || id > before.id)
        .slice(0, limit)
        .map(id => rowOf(id)),
  }
  return driver as StoreDriver
}

test('a page asks for one row more than it shows, and has a cursor only when there is one', async () => {
  const driver = driverOf(['a', 'b', 'c'])
  const first = await listPage(driver, { limit: 2 })
  expect(first.rows.map(({ id }) => id)).toEqual(['a', 'b'])
  const last = await listPage(driver, { limit: 2, cursor: first.cursor as string })
  expect([last.rows.map(({ id }) => id), last.cursor]).toEqual([['c'], undefined])
  expect((await listPage(driver, { limit: 3 })).cursor).toBeUndefined()
})

test('a filter is refused with everything that is wrong with it', async () => {
  const filter = { by: 5, tagged: 'yes', since: Number.NaN, colour: 'red' } as never
  const { message, data } = await refusalOf(listPage(driverOf([]), filter))
  expect(data.paths).toEqual(['by', 'tagged', 'since', 'colour'])
  expect(message).toContain('known: operation, by, label, parent, tagged, since, until, limit, cursor')
})

test('a limit is a whole number from 1 to 1000', () => {
  expect([checkLimit(undefined, 7), checkLimit(1, 7), checkLimit(1000, 7)]).toEqual([7, 1, 1000])
  for (const limit of [0, 1001, 1.5, Number.NaN])
    expect(refusal(() => checkLimit(limit, 7)).message).toContain('1 to 1000')
})

test('more ids than can be shown are cut short', async () => {
  const ids = Array.from({ length: 9 }, (_, i) => `abcd${i}`)
  const error = await refusalOf(resolveName(driverOf(ids), 'abcd'))
  expect(error.message).toContain('abcd4, …')
  expect(error.message).not.toContain('abcd5')
})

test('the nearest ids share the longest beginning', async () => {
  const driver = driverOf(['abcdefgh-1', 'abcdxxxx-2', 'zzzzzzzz-3'])
  expect((await refusalOf(resolveName(driver, 'abcdefgh-9'))).data.nearest).toEqual(['abcdefgh-1'])
  expect((await refusalOf(resolveName(driver, 'abcd????'))).data.nearest).toEqual([
    'abcdefgh-1',
    'abcdxxxx-2',
  ])
  expect((await refusalOf(resolveName(driver, 'nothing'))).data.nearest).toEqual([])
})

test('ids and tags are text that every database can hold', () => {
  for (const id of ['', 'a\u0000', '\ud800', 'x'.repeat(201), 7]) {
    expect(refusal(() => checkId(id)).code).toBe('invalid-argument')
  }
  for (const tag of ['', 'a b', 'a\u0007', '\udc00', 'x'.repeat(201), null]) {
    expect(refusal(() => checkTag(tag)).code).toBe('invalid-argument')
  }
  for (const name of ['v1.0', 'лес', '机器', '😀', '#0', 'a/b']) {
    checkTag(name)
    checkId(name)
  }
})
