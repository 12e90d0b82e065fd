import assert from 'node:assert/strict'
import type { MemoryCapabilities } from '../../memory/spec.ts'
import { Session } from '../../session/session.ts'
import { refused } from '../refused.ts'
import { found, listed, type MemoryCases, remembered } from './case.ts'

/** What only some backends can do; the others have to say so. */
export function capableCases({ history, expiry, lanes }: MemoryCapabilities): MemoryCases {
  return {
    ...(history ? historyCases : historyRefused),
    ...(expiry ? expiryCases : expiryRefused),
    ...(lanes ? laneCases : lanesRefused),
  }
}

const historyCases: MemoryCases = {
  async 'a history holds every text, the oldest first, and when it was replaced'({ store, again }) {
    const id = await remembered(store, { text: 'The meeting is at noon.', tags: ['calendar'] })
    await store.update(id, { text: 'The meeting is at one.' })
    const last = await store.update(id, { text: 'The meeting is at two.', tags: ['moved'] })
    assert.equal(last.version, 3)
    const history = await (await again()).history(last.uri)
    assert.deepEqual(
      history.map(({ text, version, tags }) => [text, version, tags]),
      [
        ['The meeting is at noon.', 1, ['calendar']],
        ['The meeting is at one.', 2, ['calendar']],
        ['The meeting is at two.', 3, ['moved']],
      ],
    )
    assert.deepEqual(history.at(-1), last)
    for (const [i, old] of history.slice(0, -1).entries()) {
      assert.equal(old.id, id)
      assert.equal(old.replaced, history[i + 1]?.written)
    }
    assert.deepEqual(await found(store, 'meeting noon'), ['The meeting is at two.'])
  },

  async 'an entry that was never updated has a history of one; one that is not there is refused'({ store }) {
    const id = await remembered(store, 'Only once.')
    assert.deepEqual(await store.history(id), [await store.read(id)])
    await refused(store.history('nobody'), 'memory-missing')
  },

  async 'updates of one entry at the same time all count'({ store, again }) {
    const id = await remembered(store, 'zero')
    const other = await again()
    const texts = Array.from({ length: 10 }, (_, i) => `text ${i}`)
    await Promise.all(texts.map((text, i) => (i % 2 ? store : other).update(id, { text })))
    const history = await store.history(id)
    assert.deepEqual(
      history.map(entry => entry.version),
      Array.from({ length: 11 }, (_, i) => i + 1),
    )
    assert.deepEqual(
      history.map(entry => entry.text).sort(),
      [...texts, 'zero'].sort(),
      'every text is on the record',
    )
  },
}

const historyRefused: MemoryCases = {
  async 'a history that is not kept is refused'({ store }) {
    const id = await remembered(store, 'Only once.')
    await refused(store.history(id), 'memory-unsupported')
  },
}

const expiryCases: MemoryCases = {
  async 'an entry that has ended is seen no more'({ store, again }) {
    const year = 365 * 86_400_000
    const [ended, stays] = await store.write([
      { text: 'The code of the door is 1234.', expires: 1000 },
      { text: 'The code of the gate is 5678.', expires: Date.now() + year },
    ])
    assert.ok(ended && stays)
    assert.equal(ended.expires, 1000)
    for (const one of [store, await again()]) {
      assert.equal(await one.read(ended.id), null)
      assert.deepEqual(await one.read(stays.uri), stays)
      assert.deepEqual(await found(one, 'code door'), ['The code of the gate is 5678.'])
      assert.deepEqual(await listed(one), ['The code of the gate is 5678.'])
      assert.equal((await one.tree()).entries, 1)
    }
    assert.equal(await store.forget(ended.id), 0)
  },

  async 'an update may set when an entry ends'({ store }) {
    const id = await remembered(store, 'For a while.')
    await store.update(id, { expires: 2000 })
    assert.equal(await store.read(id), null)
    await refused(store.update(id, { text: 'Too late.' }), 'memory-missing')
  },

  async 'the key of an entry that has ended may be used anew'({ store }) {
    await remembered(store, { text: 'before', key: 'k', expires: 1000 })
    await remembered(store, { text: 'after', key: 'k' })
    assert.deepEqual(await listed(store), ['after'])
  },
}

const expiryRefused: MemoryCases = {
  async 'an end that would not be kept is refused'({ store }) {
    const id = await remembered(store, 'Stays.')
    await refused(store.write([{ text: 'x', expires: 4_000_000_000_000 }]), 'memory-unsupported')
    await refused(store.update(id, { expires: 4_000_000_000_000 }), 'memory-unsupported')
    assert.deepEqual(await listed(store), ['Stays.'])
  },
}

const laneCases: MemoryCases = {
  async 'an entry on a lane is seen from it and from what was forked off it, and from nowhere else'({
    store,
    again,
  }) {
    await store.write([
      { text: 'The heron is on the roof.' },
      { text: 'The heron flew off.', lane: 'a' },
      { text: 'The heron came back.', lane: 'a/b' },
      { text: 'The heron never was there.', lane: 'c' },
    ])
    const common = 'The heron is on the roof.'
    const seen = {
      a: ['The heron flew off.', common],
      'a/b': ['The heron came back.', 'The heron flew off.', common],
      c: [common, 'The heron never was there.'],
      'a/bc': ['The heron flew off.', common],
      elsewhere: [common],
    }
    for (const one of [store, await again()]) {
      for (const [lane, texts] of Object.entries(seen)) {
        assert.deepEqual(await listed(one, { lane }), texts, lane)
        assert.deepEqual((await found(one, 'heron', { lane, limit: 10 })).sort(), texts, lane)
      }
      assert.deepEqual(await listed(one), [common])
      assert.deepEqual(await found(one, 'heron'), [common])
    }
  },

  async 'the commit of a session settles the entries of its lane'({ store }) {
    const branch = Session.fromUserMessage('Where is the key?').fork('search')
    const sibling = Session.fromUserMessage('Where is the key?').fork('other')
    const lanes = [branch.lineage.lane, sibling.lineage.lane] as [string, string]
    await store.write([
      { text: 'The key is under the mat.', lane: lanes[0] },
      { text: 'The key is lost.', lane: lanes[1] },
    ])
    assert.deepEqual(await listed(store, { category: 'fact' }), [])
    const { settled } = await store.commit(branch)
    assert.equal(settled, 1)
    assert.deepEqual(await listed(store, { category: 'fact' }), ['The key is under the mat.'])
    const [entry] = (await store.list({ category: 'fact' })).entries
    assert.equal(entry?.lane, undefined)
    assert.equal((await store.commit(branch)).settled, 0)
  },

  async 'the commit of a merge adopts what its branches wrote, and marks what a rejected one did'({ store }) {
    const question = Session.fromUserMessage('Where is the key?')
    const branches = await Promise.all(
      ['under the mat', 'lost'].map(async place => {
        const branch = question.fork(place)
        const lane = branch.lineage.lane as string
        const [entry] = await store.write([{ text: `The key is ${place}.`, lane }])
        const entries = [entry?.id as string]
        return branch.append({ kind: 'memory', op: 'remember', store: store.name, entries })
      }),
    )
    const [good, bad] = branches as [Session, Session]
    const merged = await good.merge(bad)
    const subject = bad.id
    const { settled } = await store.commit(merged.append({ kind: 'verdict', verdict: 'reject', subject }))
    assert.equal(settled, 1)
    const { entries } = await store.list({ category: 'fact' })
    assert.deepEqual(entries.map(({ text, standing }) => [text, standing]).sort(), [
      ['The key is lost.', 'rejected'],
      ['The key is under the mat.', 'adopted'],
    ])
  },

  async 'what a rejected session wrote on its lane is marked, though it was never merged'({ store }) {
    const question = Session.fromUserMessage('Where is the key?')
    const branch = question.fork('lost')
    const lane = branch.lineage.lane as string
    const result = branch.append({ kind: 'assistant', text: 'It is lost.' })
    await store.write([{ text: 'The key is lost.', lane, source: { session: result.id } }])
    await store.commit(question.append({ kind: 'verdict', verdict: 'reject', subject: result.id }))
    const { entries } = await store.list({ category: 'fact' })
    assert.deepEqual(
      entries.map(({ text, standing }) => [text, standing]),
      [['The key is lost.', 'rejected']],
    )
  },
}

const lanesRefused: MemoryCases = {
  async 'an entry for a lane that would not be kept apart is refused'({ store }) {
    const id = await remembered(store, 'For all.')
    await refused(store.write([{ text: 'x', lane: 'a' }]), 'memory-unsupported')
    await refused(store.update(id, { lane: 'a' }), 'memory-unsupported')
    assert.deepEqual(await listed(store, { lane: 'a' }), ['For all.'])
  },
}
