import assert from 'node:assert/strict'
import type { NewMemory } from '../../memory/spec.ts'
import { refused } from '../refused.ts'
import { found, listed, type MemoryCases, remembered } from './case.ts'

const whole = {
  text: 'The invoice number is 4711.',
  scope: 'user/ada',
  category: 'preference',
  tags: ['billing', 'important'],
  metadata: { amount: 12.5, paid: false, lines: [{ name: 'tea' }, null], __proto: 'x' },
  at: 1_700_000_000_000,
  source: { session: 's-1', chunks: ['c-1', 'c-2'], series: 'talk', index: 3, by: 'researcher' },
  key: 'invoice/4711',
  standing: 'rejected',
} as const satisfies NewMemory

export function entryCases(): MemoryCases {
  return {
    async 'what is written comes back by id and by URI, with its defaults'({ store }) {
      const before = Date.now()
      const [kept] = await store.write([{ text: 'The sky is blue.' }])
      assert.ok(kept)
      const { id, uri, at, written, ...rest } = kept
      assert.deepEqual(rest, {
        text: 'The sky is blue.',
        scope: 'agent',
        category: 'fact',
        tags: [],
        metadata: {},
        source: {},
        standing: 'adopted',
        version: 1,
      })
      assert.match(uri, /^memory:\/\/agent\/fact\//)
      assert.ok(uri.endsWith(id), `${uri} does not end in ${id}`)
      assert.ok(at >= before && written >= before, 'times are now by default')
      assert.deepEqual(await store.read(id), kept)
      assert.deepEqual(await store.read(uri), kept)
    },

    async 'everything that an entry can say comes back'({ store, again }) {
      const [kept] = await store.write([whole])
      assert.ok(kept)
      const { id, uri, written, version, ...rest } = kept
      assert.deepEqual(rest, whole)
      assert.equal(version, 1)
      assert.ok(uri.startsWith('memory://user/ada/preference/'), uri)
      assert.deepEqual(await (await again()).read(id), kept)
    },

    async 'several entries come back in the order in which they were given; none is none'({ store }) {
      const texts = Array.from({ length: 12 }, (_, i) => `Entry number ${i}.`)
      const kept = await store.write(texts.map(text => ({ text })))
      assert.deepEqual(
        kept.map(entry => entry.text),
        texts,
      )
      assert.equal(new Set(kept.map(entry => entry.id)).size, 12)
      assert.deepEqual(await store.write([]), [])
    },

    async 'what is not there reads as null, and cannot be updated'({ store }) {
      for (const ref of ['nobody', 'memory://agent/fact/nobody', 'memory://', 'not a reference', '../../x']) {
        assert.equal(await store.read(ref), null, ref)
      }
      await refused(store.update('nobody', { text: 'x' }), 'memory-missing')
    },

    async 'a key is written once in its scope, and comes back as it stands'({ store, again }) {
      const id = await remembered(store, { text: 'first', key: 'k', scope: 'user/ada' })
      const [same] = await (await again()).write([{ text: 'second', key: 'k', scope: 'user/ada' }])
      assert.equal(same?.id, id)
      assert.equal(same?.text, 'first')
      const others = await store.write([
        { text: 'elsewhere', key: 'k', scope: 'user/eve' },
        { text: 'twice in one call', key: 'n', scope: 'user/eve' },
        { text: 'twice in one call, again', key: 'n', scope: 'user/eve' },
      ])
      assert.equal(others[1]?.id, others[2]?.id)
      assert.deepEqual(await listed(store), ['elsewhere', 'first', 'twice in one call'])
    },

    async 'without a key, the same text is two entries'({ store }) {
      const [a, b] = await store.write([{ text: 'said twice' }, { text: 'said twice' }])
      assert.notEqual(a?.id, b?.id)
      assert.equal((await listed(store)).length, 2)
    },

    async 'an update replaces what it names and keeps the rest'({ store, again }) {
      const id = await remembered(store, whole)
      const before = await store.read(id)
      const updated = await store.update(id, {
        text: 'The receipt number is 4712.',
        tags: ['settled'],
        metadata: { paid: true },
        standing: 'adopted',
      })
      assert.deepEqual(updated, {
        ...before,
        text: 'The receipt number is 4712.',
        tags: ['settled'],
        metadata: { paid: true },
        standing: 'adopted',
        version: 2,
        written: updated.written,
      })
      assert.deepEqual(await (await again()).read(updated.uri), updated)
      assert.deepEqual(await found(store, 'receipt'), ['The receipt number is 4712.'])
      assert.deepEqual(await found(store, 'invoice'), [])
      assert.deepEqual(await listed(store, { tags: ['billing'] }), [])
    },

    async 'an update may move an entry to another category, and its id stays'({ store }) {
      const id = await remembered(store, { text: 'Tea, not coffee.', scope: 'user/ada' })
      const moved = await store.update(id, { category: 'preference' })
      assert.equal(moved.id, id)
      assert.ok(moved.uri.startsWith('memory://user/ada/preference/'), moved.uri)
      assert.deepEqual(await store.read(id), moved)
      assert.deepEqual(await store.read(moved.uri), moved)
      assert.deepEqual(await listed(store, { category: 'preference' }), ['Tea, not coffee.'])
      assert.deepEqual(await listed(store, { category: 'fact' }), [])
    },

    async 'forget ends an entry for every way of asking, and says how many there were'({ store, again }) {
      const [a, b] = await store.write([{ text: 'The parrot is green.' }, { text: 'The parrot sings.' }])
      assert.ok(a && b)
      assert.equal(await store.forget(a.id), 1)
      const other = await again()
      for (const one of [store, other]) {
        assert.equal(await one.read(a.id), null)
        assert.equal(await one.read(a.uri), null)
        assert.deepEqual(await found(one, 'parrot'), ['The parrot sings.'])
        assert.deepEqual(await listed(one), ['The parrot sings.'])
        assert.equal((await one.tree()).entries, 1)
      }
      assert.equal(await store.forget(a.id), 0)
      await refused(store.update(a.id, { text: 'It is red.' }), 'memory-missing')
      assert.equal(await other.forget(b.uri), 1)
      assert.deepEqual(await listed(store), [])
      assert.equal(await store.forget('nobody'), 0)
    },

    async 'forget takes a filter, which has to say something'({ store }) {
      await store.write([
        { text: 'a', scope: 'user/ada', tags: ['old'] },
        { text: 'b', scope: 'user/ada' },
        { text: 'c', scope: 'user/eve', tags: ['old'] },
      ])
      assert.equal(await store.forget({ scope: 'user/ada', tags: ['old'] }), 1)
      assert.deepEqual(await listed(store), ['b', 'c'])
      assert.equal(await store.forget({ scope: 'user/nobody' }), 0)
      await refused(store.forget({}), 'invalid-argument')
      assert.equal(await store.forget({ scope: 'user' }), 2)
      assert.deepEqual(await listed(store), [])
    },

    async 'the key of a forgotten entry may be used anew'({ store }) {
      const first = await remembered(store, { text: 'before', key: 'k' })
      await store.forget(first)
      await remembered(store, { text: 'after', key: 'k' })
      assert.deepEqual(await listed(store), ['after'])
    },

    async 'a write with one entry that cannot be kept keeps none'({ store }) {
      const bad = [
        { text: 7 },
        { text: 'x', at: Number.NaN },
        { text: 'x', scope: '' },
        { text: 'x', tags: 'y' },
      ]
      for (const entry of bad) {
        const entries = [{ text: 'good' }, entry, { text: 'also good' }] as unknown as NewMemory[]
        await refused(store.write(entries), 'invalid-argument')
      }
      assert.deepEqual(await listed(store), [])
      const error = await refused(store.write(bad as unknown as NewMemory[]), 'invalid-argument')
      for (const place of ['0', '1', '2', '3']) assert.ok(error.message.includes(place), error.message)
    },

    async 'work whose signal has aborted is cancelled and leaves nothing'({ store }) {
      const signal = AbortSignal.abort(new Error('enough'))
      const id = await remembered(store, 'The tide is high.')
      await refused(store.write([{ text: 'never' }], { signal }), 'cancelled')
      await refused(store.update(id, { text: 'never' }, { signal }), 'cancelled')
      await refused(store.forget(id, { signal }), 'cancelled')
      await refused(store.find('tide', { signal }), 'cancelled')
      assert.deepEqual(await listed(store), ['The tide is high.'])
    },
  }
}
