import { DatabaseSync } from 'node:sqlite'
import { expect, onTestFinished, test, vi } from 'vitest'
import { Database } from '../../src/memory/drivers/local/database.ts'
import { localMemory } from '../../src/memory/drivers/local/local-memory.ts'
import type { MemoryFilter } from '../../src/memory/spec.ts'
import { Session } from '../../src/session/index.ts'
import { refusalOf } from '../session/make.ts'
import { temporaryFolder } from '../store/folder.ts'

function place(): string {
  const folder = temporaryFolder()
  onTestFinished(() => folder[Symbol.dispose]())
  return folder.path
}

const open = (path = place(), now = Date.now) => localMemory({ durability: 'normal', now }).open({ path })

/** The next commit finds the disk full. */
function fillDisk(): void {
  const { sql } = Database.prototype
  const spy = vi.spyOn(Database.prototype, 'sql').mockImplementation(function (this: Database, text) {
    if (text !== 'COMMIT') return sql.call(this, text)
    spy.mockRestore()
    throw Object.assign(new Error('database or disk is full'), { code: 'ERR_SQLITE_ERROR', errcode: 13 })
  })
}

test('a write that found the disk full leaves nothing behind that would put a later entry under another name', async () => {
  await using store = await open()
  await store.write([{ text: 'The first.', scope: 'user/eve' }])
  fillDisk()
  const diary = { text: 'A private diary.', scope: 'user/ada' }
  expect((await refusalOf(store.write([diary]))).code).toBe('store-full')
  await store.write([{ text: 'A public note.', scope: 'team/everyone' }])
  const [kept] = await store.write([diary])
  expect((await store.read(kept?.id as string))?.scope).toBe('user/ada')
  expect((await store.find('private diary', { scope: 'team' })).hits).toEqual([])
})

test('a merge of the index that found the disk full is made again', async () => {
  await using store = await open()
  const many = (from: number, count: number) =>
    Array.from({ length: count }, (_, i) => ({ text: `note${from + i} of the harbour` }))
  await store.write(many(0, 1_500))
  fillDisk()
  expect((await refusalOf(store.write(many(1_500, 1_000)))).code).toBe('store-full')
  expect((await store.find('note7')).hits[0]?.text).toBe('note7 of the harbour')
  expect((await store.find('note1600', { floor: 0 })).hits).toEqual([])
  await store.write(many(1_500, 1_000))
  expect((await store.find('note1600')).hits[0]?.text).toBe('note1600 of the harbour')
})

test('to forget, a filter has to leave something out: what only belongs to a find or a list ends nothing', async () => {
  await using store = await open()
  await store.write([{ text: 'The gate is green.' }, { text: 'The roof is teal.' }])
  const filters = [{ limit: 1 }, { floor: 0.9 }, { signal: AbortSignal.abort() }, { cursor: '1:1' }]
  for (const filter of filters)
    expect((await refusalOf(store.forget(filter as MemoryFilter))).message).toContain('is not known')
  for (const filter of [{ tags: [] }, { metadata: {} }, { tags: [], metadata: {}, standing: undefined }])
    expect((await refusalOf(store.forget(filter as MemoryFilter))).message).toContain('a filter of nothing')
  expect((await store.list()).entries).toHaveLength(2)
})

test('what has ended by itself is gone from the file with the next write', async () => {
  const path = place()
  let now = 1_000
  await using store = await open(path, () => now)
  const texts = () => {
    using db = new DatabaseSync(`${path}/memory.db`)
    return db
      .prepare('SELECT text FROM entry')
      .all()
      .map(row => row.text)
  }
  const short = (text: string) => ({ text, expires: 2_000, scope: 'user/ada' })
  await store.write([short('The code of the door.'), short('The code of the gate.')])
  now = 3_000
  expect(await store.forget({ scope: 'user/ada' })).toBe(0)
  expect(texts()).toEqual([])
  await store.write([{ ...short('The code of the shed.'), expires: 4_000 }])
  now = 5_000
  await store.write([{ text: 'The roof is teal.' }])
  expect(texts()).toEqual(['The roof is teal.'])
})

test('a word that stands in a text more often than sixteen bits can count is found', async () => {
  await using store = await open()
  await store.write([{ text: 'banana '.repeat(65_536) }, { text: '哈'.repeat(65_536) }])
  expect((await store.find('banana')).hits).toHaveLength(1)
  expect((await store.find('哈')).hits).toHaveLength(1)
})

test('a time that is no date is refused, since it was counted in other units', async () => {
  await using store = await open()
  const at = 1_700_000_000_000_000_000
  expect((await refusalOf(store.write([{ text: 'Nanoseconds.', at }]))).message).toContain(
    'entries[0].at: must be milliseconds since the epoch, not 1700000000000000000',
  )
})

test('a question as long as a document is looked for by its beginning and its end', async () => {
  await using store = await open()
  await store.write([{ text: 'The amber door.' }, { text: 'The teal roof.' }, { text: 'The violet shed.' }])
  const filler = (word: string) => `${word} `.repeat(100_000)
  const { hits } = await store.find(`amber ${filler('lorem')} violet ${filler('ipsum')} teal`, { floor: 0 })
  expect(hits.map(({ text }) => text).sort()).toEqual(['The amber door.', 'The teal roof.'])
})

test('a list reads the texts of its page and no others, however many its filter leaves out', async () => {
  await using store = await open()
  const entries = Array.from({ length: 500 }, (_, i) => ({
    text: `Note ${i}.`,
    tags: i % 100 ? [] : ['round'],
    at: i % 250,
  }))
  await store.write(entries)
  let read = 0
  const count = <T>(row: T): T => {
    if ((row as { text?: string } | undefined)?.text?.startsWith('Note')) read++
    return row
  }
  const { get, iterate } = Database.prototype
  const spies = [
    vi.spyOn(Database.prototype, 'get').mockImplementation(function (this: Database, ...args) {
      return count(get.apply(this, args))
    }),
    vi.spyOn(Database.prototype, 'iterate').mockImplementation(function* (this: Database, ...args) {
      for (const row of iterate.apply(this, args)) yield count(row)
    }),
  ]
  onTestFinished(() => spies.forEach(spy => void spy.mockRestore()))
  const first = await store.list({ tags: ['round'], limit: 3 })
  const rest = await store.list({ tags: ['round'], limit: 3, cursor: first.cursor ?? '' })
  expect([...first.entries, ...rest.entries].map(({ text }) => text)).toEqual(
    [200, 400, 100, 300, 0].map(i => `Note ${i}.`),
  )
  expect([read, rest.cursor]).toEqual([5, undefined])
})

test('a turn that was forgotten does not come back when its session is committed again', async () => {
  await using store = await open()
  const session = Session.fromUserMessage('My salary is ninety thousand.').user('And tea, please.')
  const { written } = await store.commit(session)
  expect(await store.forget(written[0]?.id as string)).toBe(1)
  expect((await store.commit(session.user('Thank you.'))).written.map(({ text }) => text)).toEqual([
    'user: Thank you.',
  ])
  expect((await store.find('salary')).hits).toEqual([])
  // Said again, it is another turn; and another scope is another place.
  const again = session.user('My salary is ninety thousand.')
  expect((await store.commit(again)).written).toHaveLength(1)
  expect((await store.commit(session, { scope: 'team' })).written).toHaveLength(2)
})

test('what is no resource is refused with what one is', async () => {
  await using store = await open()
  for (const resource of [null, undefined, 5, []])
    expect((await refusalOf(store.ingest(resource as never))).message).toContain(
      'A resource is { name, text }',
    )
})
