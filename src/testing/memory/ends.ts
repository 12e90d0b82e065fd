import assert from 'node:assert/strict'
import { Session } from '../../session/session.ts'
import { refused } from '../refused.ts'
import { listed, type MemoryCases, remembered } from './case.ts'

export function endCases(): MemoryCases {
  return {
    async 'many writers at once lose nothing, and a key is still written once'({ store, again }) {
      const stores = [store, await again(), await again()]
      await Promise.all(
        Array.from({ length: 30 }, async (_, i) => {
          const one = stores[i % stores.length] as typeof store
          await one.write([{ text: `own ${i}` }, { text: `shared ${i % 5}`, key: `${i % 5}` }])
        }),
      )
      const own = Array.from({ length: 30 }, (_, i) => `own ${i}`)
      const shared = Array.from({ length: 5 }, (_, i) => `shared ${i}`)
      for (const one of stores) assert.deepEqual(await listed(one), [...own, ...shared].sort())
    },

    async 'what was written is there for whoever opens the same memories, under the same name'({
      store,
      again,
    }) {
      const id = await remembered(store, 'The tide is high.')
      const other = await again()
      assert.equal(other.name, store.name)
      assert.equal(other.backend, store.backend)
      assert.deepEqual(other.capabilities, store.capabilities)
      assert.deepEqual(await other.read(id), await store.read(id))
      await store.close()
      assert.deepEqual(await listed(await again()), ['The tide is high.'])
    },

    async 'after close everything is refused, and closing again is nothing'({ store, again }) {
      const id = await remembered(store, 'The tide is high.')
      const other = await again()
      await store.close()
      await store.close()
      const calls: (() => Promise<unknown>)[] = [
        () => store.write([{ text: 'x' }]),
        () => store.update(id, { text: 'x' }),
        () => store.read(id),
        () => store.list(),
        () => store.tree(),
        () => store.find('tide'),
        () => store.forget(id),
        () => store.commit(Session.fromUserMessage('x')),
      ]
      if (store.capabilities.history) calls.push(() => store.history(id))
      if (store.capabilities.resources) calls.push(() => store.ingest({ name: 'x', text: 'x' }))
      for (const call of calls) await refused(call(), 'store-closed')
      assert.deepEqual(await listed(other), ['The tide is high.'])
    },
  }
}
