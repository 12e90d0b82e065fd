import { expect, test } from 'vitest'
import { openStore } from '../../src/store/open.ts'
import { testStore } from '../../src/testing/index.ts'

const cases = testStore(async options => {
  const store = await openStore('memory:', options)
  return { store, dispose: () => store.close() }
})

for (const { name, run } of cases) test(name, run)

test('every memory store is one of its own', async () => {
  const [one, two] = [await openStore('memory:'), await openStore('memory:')]
  await one.runs.create({ id: 'r' })
  expect(await two.runs.list()).toEqual([])
  expect(one.url).toBe('memory:')
})

test('a memory store opened to read only refuses writes', async () => {
  await using store = await openStore('memory:', { readOnly: true })
  await expect(store.blobs.put('x')).rejects.toMatchObject({ code: 'store-read-only' })
  expect(await store.sessions.search('x')).toEqual([])
})
