import { test } from 'vitest'
import { openStore } from '../../src/store/open.ts'
import { testStore } from '../../src/testing/index.ts'
import { temporaryFolder } from './folder.ts'

const cases = testStore(async options => {
  const folder = temporaryFolder()
  const url = `sqlite:${folder.path}/rath.db`
  const open = (more = options) => openStore(url, { durability: 'normal', ...more })
  const store = await open()
  return {
    store,
    again: open,
    async dispose() {
      await store.close()
      folder[Symbol.dispose]()
    },
  }
})

for (const { name, run } of cases) test(name, run)
