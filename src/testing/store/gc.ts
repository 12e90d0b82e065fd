import assert from 'node:assert/strict'
import type { ConformanceCase } from '../conformance.ts'
import { assertKept, casesOn, type OpenStore, says, talk } from './case.ts'

const nothing = { chunks: 0, blobs: 0, bytes: 0 }

export function gcCases(open: OpenStore): ConformanceCase[] {
  return casesOn(open, {
    async 'a thousand forks of a thousand chunks are a thousand chunks'({ store }) {
      const trunk = talk(1000)
      await store.sessions.put(trunk)
      const forks = trunk.forks(1000)
      await Promise.all(forks.map(fork => store.sessions.put(fork)))
      assert.equal((await store.gc({ olderThan: 0, dryRun: true })).chunks, 0)
      const last = forks.pop()
      await assertKept(store, last ?? trunk)
      for (const { id } of [trunk, ...forks]) await store.sessions.delete(id)
      assert.deepEqual(await store.gc({ olderThan: 0 }), { dryRun: false, ...nothing })
      await assertKept(store, last ?? trunk)
      await store.sessions.delete(last?.id ?? '')
      assert.equal((await store.gc({ olderThan: 0 })).chunks, 1000)
    },

    async 'a dry run counts exactly what gc then frees, and frees nothing'({ store }) {
      const gone = talk(10).append({ kind: 'note', name: 'n', data: 'x y '.repeat(30_000) })
      const kept = gone.rewind(4).append(says('another way'))
      await store.sessions.put(gone)
      await store.sessions.put(kept)
      await store.blobs.put('loose')
      await store.sessions.delete(gone.id)
      const counted = await store.gc({ olderThan: 0, dryRun: true })
      assert.deepEqual([counted.dryRun, counted.chunks, counted.blobs], [true, 6, 2])
      assert.ok(counted.bytes > 100_000)
      assert.deepEqual(await store.gc({ olderThan: 0, dryRun: true }), counted)
      assert.deepEqual(await store.gc({ olderThan: 0 }), { ...counted, dryRun: false })
      assert.deepEqual(await store.gc({ olderThan: 0 }), { dryRun: false, ...nothing })
      await assertKept(store, kept)
    },

    async 'gc leaves alone what was written less than olderThan ago, an hour by default'({ store }) {
      const session = talk(3)
      await store.sessions.put(session)
      await store.blobs.put('under way')
      await store.sessions.delete(session.id)
      assert.deepEqual(await store.gc(), { dryRun: false, ...nothing })
      assert.deepEqual(await store.gc({ olderThan: 60_000 }), { dryRun: false, ...nothing })
      const freed = await store.gc({ olderThan: 0 })
      assert.deepEqual([freed.chunks, freed.blobs], [3, 1])
    },

    async 'gc leaves alone what sessions, tags and runs reach'({ store }) {
      const data = 'p'.repeat(50_000)
      const session = talk(2).append({ kind: 'note', name: 'n', data })
      await store.sessions.put(session, { tag: 'named' })
      await store.runs.create({ id: 'r', input: session.id })
      const { fence } = await store.runs.claim('r', 'w', 1000)
      const request = { text: 'q'.repeat(50_000) }
      await store.runs.intend('r', fence, { key: 'k', occurrence: 0, kind: 'tool', request })
      assert.deepEqual(await store.gc({ olderThan: 0 }), { dryRun: false, ...nothing })
      await assertKept(store, session)
      assert.deepEqual((await store.runs.entry('r', 'k', 0))?.request, request)
    },

    async 'a session can be put again after gc took its chunks'({ store, other }) {
      const session = talk(5)
      const second = await other()
      await store.sessions.put(session)
      await store.sessions.delete(session.id)
      await second.gc({ olderThan: 0 })
      const results = await Promise.all([store.sessions.put(session), store.sessions.put(session.fork('f'))])
      for (const kept of results) await assertKept(second, kept)
    },

    async 'an append beside a put that gc took the ground from is not disturbed'({ store, other }) {
      const [steady, lost] = [talk(1), talk(5)]
      const second = await other()
      await store.sessions.put(steady)
      await store.sessions.put(lost)
      await store.sessions.delete(lost.id)
      await second.gc({ olderThan: 0 })
      await Promise.all([
        store.sessions.append(steady.id, [says('one')]),
        store.sessions.put(lost.append(says('on'))),
        store.sessions.append(steady.id, [says('two')]),
      ])
      const back = await second.sessions.get(steady.id)
      assert.deepEqual([back.length, back.verify().ok], [3, true])
    },

    async 'gc beside writers takes nothing of theirs'({ store, other }) {
      const second = await other()
      const session = talk(1)
      await store.sessions.put(session)
      const writing = Array.from({ length: 50 }, async (_, i) => {
        await store.sessions.append(session.id, [says(`append ${i}`)])
        const own = talk(2, `own ${i}`)
        await store.sessions.put(own)
        if (i % 3 === 0) await store.sessions.delete(own.id)
      })
      for (let i = 0; i < 10; i++) await second.gc({ olderThan: 0 })
      await Promise.all(writing)
      await second.gc({ olderThan: 0 })
      for (const { id } of (await second.sessions.list({ limit: 1000 })).rows) {
        assert.equal((await second.sessions.get(id)).verify().ok, true)
      }
      assert.equal((await second.sessions.row(session.id)).length, 51)
    },
  })
}
