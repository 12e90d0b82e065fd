import { copyFileSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { openStore } from '../../src/store/open.ts'
import { refusalOf } from '../session/make.ts'
import { temporaryFolder } from './folder.ts'

const fixtures = join(import.meta.dirname, '../fixtures')

for (const name of readdirSync(fixtures).filter(file => /^store-v\d+\.db$/.test(file))) {
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
