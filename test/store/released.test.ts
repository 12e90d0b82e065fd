import { copyFileSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { expect, test } from 'vitest'
import { Session } from '../../src/session/session.ts'
import { migrate, migrations } from '../../src/store/drivers/sqlite/schema.ts'
import { openStore } from '../../src/store/open.ts'
import { refusalOf } from '../session/make.ts'
import { temporaryFolder } from './folder.ts'

const fixtures = join(import.meta.dirname, '../fixtures')

// `store-v3-tail.db` was not closed: the index of digests and the heads of its sessions had not caught up with its chunks.
for (const name of readdirSync(fixtures).filter(file => /^store-v\d+(-tail)?\.db$/.test(file))) {
  test(`${name}, made by scripts/store-fixture.ts, opens, reads and goes on`, async () => {
    using folder = temporaryFolder()
    const path = join(folder.path, 'rath.db')
    copyFileSync(join(fixtures, name), path)
    await using store = await openStore(`sqlite:${path}`)
    const fork = await store.sessions.get('fork')
    expect(fork.verify()).toEqual({ ok: true, checked: 3 })
    expect(fork.head).toBe('272eccfa7fc95deea2bbd8d82b0ff40a3343df06600a96d0905733c50be0736d')
    expect([fork.branch, fork.text]).toEqual(['doubt', 'I looked twice.'])
    expect(fork.chunks.at(2)?.text).toBe('a long look, '.repeat(2000))
    expect(fork.lineage.parents).toEqual([(await store.sessions.row('trunk')).id])
    expect((await store.sessions.search('looked twice')).map(hit => hit.index)).toEqual([1])
    expect((await store.runs.entry('run', 'look', 0))?.outcome).toBe('open')
    expect(await store.gc({ olderThan: 0 })).toMatchObject({ chunks: 0, blobs: 0 })
    expect((await store.sessions.append(fork.id, [{ kind: 'user', text: 'on' }])).length).toBe(4)
    expect((await store.sessions.search('on')).length).toBe(1)
  })
}

test('a store of an older format says that it has to be opened once to write, and stays as it is', async () => {
  using folder = temporaryFolder()
  const path = join(folder.path, 'rath.db')
  copyFileSync(join(fixtures, 'store-v2.db'), path)
  const refusal = await refusalOf(openStore(`sqlite:${path}`, { readOnly: true }))
  expect([refusal.code, refusal.data]).toMatchObject(['store-read-only', { version: 2 }])
  expect(refusal.message).toContain('open it once without readOnly')
  expect(readFileSync(path)).toEqual(readFileSync(join(fixtures, 'store-v2.db')))
  await (await openStore(`sqlite:${path}`)).close()
  await using store = await openStore(`sqlite:${path}`, { readOnly: true })
  expect((await store.sessions.get('fork')).length).toBe(3)
})

test('two rows of format 3 that are one chunk become one, and every session keeps its chunks', async () => {
  using folder = temporaryFolder()
  const path = join(folder.path, 'rath.db')
  const chunks = Session.fromUserMessage('hello', { at: 1 }).append(
    { kind: 'user', text: 'again', at: 2 },
    { kind: 'user', text: 'on', at: 3 },
  ).chunks
  const [hello, again, on] = chunks.map(({ id, ...body }) => ({ id, body: JSON.stringify(body) }))
  const db = new DatabaseSync(path)
  migrate(db, path, migrations.slice(0, 3))
  const lineage = JSON.stringify(Session.create('empty').lineage)
  for (const [n, id] of ['one', 'two'].entries())
    db.prepare('INSERT INTO session VALUES (?, ?, 1, 1, \'""\', ?, 1, 1)').run(n + 1, id, lineage)
  const insert = db.prepare('INSERT INTO chunk VALUES (?, unhex(?), ?, ?, ?, 1, ?)')
  const rows = [
    [1, hello, null, 0, 1],
    [2, again, 1, 1, 1],
    [3, again, 1, 1, 2],
    [4, on, 3, 2, 2],
  ] as const
  for (const [n, chunk, previous, position, session] of rows)
    insert.run(n, chunk?.id ?? '', previous, position, session, chunk?.body ?? '')
  db.close()

  await using store = await openStore(`sqlite:${path}`, { secrets: {} })
  const lengths = await Promise.all(
    ['one', 'two'].map(async id => {
      const session = await store.sessions.get(id)
      return [session.length, session.verify().ok]
    }),
  )
  expect(lengths).toEqual([
    [2, true],
    [3, true],
  ])
  expect((await store.sessions.search('again')).length).toBe(1)
  expect((await store.sessions.append('one', [{ kind: 'user', text: 'on', at: 3 }])).head).toBe(on?.id)
  expect(await store.gc({ olderThan: 0 })).toMatchObject({ chunks: 0 })
  expect((await store.sessions.get('two')).head).toBe(on?.id)
})
