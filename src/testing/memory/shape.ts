import assert from 'node:assert/strict'
import type { MemoryTree } from '../../memory/spec.ts'
import { type MemoryCases, remembered } from './case.ts'

/** A tree as `{ uri: entries }`. */
function flat({ uri, entries, children }: MemoryTree): Record<string, number> {
  return Object.assign({ [uri]: entries }, ...children.map(flat))
}

export function shapeCases(): MemoryCases {
  return {
    async 'the tree counts what each scope and category holds'({ store }) {
      assert.deepEqual(await store.tree(), { uri: 'memory://', entries: 0, children: [] })
      await store.write([
        { text: 'a', scope: 'user/ada', category: 'fact' },
        { text: 'b', scope: 'user/ada', category: 'preference' },
        { text: 'c', scope: 'user/ada', category: 'preference' },
        { text: 'd', scope: 'user/eve', category: 'fact' },
        { text: 'e', scope: 'agent/researcher', category: 'fact' },
      ])
      const ada = {
        'memory://user/ada': 3,
        'memory://user/ada/fact': 1,
        'memory://user/ada/preference': 2,
      }
      const user = { 'memory://user': 4, ...ada, 'memory://user/eve': 1, 'memory://user/eve/fact': 1 }
      assert.deepEqual(flat(await store.tree()), {
        'memory://': 5,
        'memory://agent': 1,
        'memory://agent/researcher': 1,
        'memory://agent/researcher/fact': 1,
        ...user,
      })
      assert.deepEqual(flat(await store.tree('memory://user')), user)
      assert.deepEqual(flat(await store.tree('memory://user/ada')), ada)
      assert.deepEqual(flat(await store.tree('memory://', { depth: 1 })), {
        'memory://': 5,
        'memory://agent': 1,
        'memory://user': 4,
      })
      assert.deepEqual(await store.tree('memory://nobody'), {
        uri: 'memory://nobody',
        entries: 0,
        children: [],
      })
    },

    async 'a list gives the newest first, in pages that join without gap'({ store }) {
      const texts = Array.from({ length: 23 }, (_, i) => `page ${i}`)
      await store.write(texts.map((text, i) => ({ text, at: 1000 + i })))
      const seen: string[] = []
      let cursor: string | undefined
      do {
        const page = await store.list({ limit: 5, ...(cursor !== undefined && { cursor }) })
        assert.ok(page.entries.length <= 5)
        seen.push(...page.entries.map(entry => entry.text))
        cursor = page.cursor
      } while (cursor !== undefined && seen.length < 100)
      assert.deepEqual(seen, texts.toReversed())
      assert.equal((await store.list({ limit: 23 })).cursor, undefined)
    },

    async 'a cursor continues where it was, unmoved by what was added or forgotten since'({ store, again }) {
      const kept = await store.write(Array.from({ length: 10 }, (_, i) => ({ text: `${i}`, at: 1000 })))
      const first = await store.list({ limit: 4 })
      const other = await again()
      await remembered(other, { text: 'newer', at: 5000 })
      const onPage = new Set(first.entries.map(entry => entry.id))
      const gone = kept.find(entry => !onPage.has(entry.id))
      await other.forget(gone?.id as string)
      await other.forget(first.entries[3]?.id as string)
      const rest = await store.list({ limit: 100, cursor: first.cursor as string })
      const ids = [...first.entries, ...rest.entries].map(entry => entry.id)
      assert.deepEqual(
        ids.toSorted(),
        kept
          .map(entry => entry.id)
          .filter(id => id !== gone?.id)
          .toSorted(),
      )
    },

    async 'a cursor keeps to its filter'({ store }) {
      await store.write(
        Array.from({ length: 10 }, (_, i) => ({ text: `${i}`, at: 1000 + i, tags: i % 2 ? ['odd'] : [] })),
      )
      const first = await store.list({ tags: ['odd'], limit: 3 })
      const rest = await store.list({ tags: ['odd'], limit: 3, cursor: first.cursor as string })
      assert.deepEqual(
        [...first.entries, ...rest.entries].map(entry => entry.text),
        ['9', '7', '5', '3', '1'],
      )
      assert.equal(rest.cursor, undefined)
    },
  }
}
