import assert from 'node:assert/strict'
import { Session } from '../../session/session.ts'
import type { ConformanceCase } from '../conformance.ts'
import { refused } from '../refused.ts'
import { assertKept, casesOn, type OpenStore, says, talk, texts, user } from './case.ts'

export function sessionCases(open: OpenStore): ConformanceCase[] {
  return casesOn(open, {
    async 'a session comes back with its chunks, digests, branch and lineage'({ store, other }) {
      const trunk = Session.fromUserMessage('Is the door open?', {
        by: 'Guard',
        label: 'door',
        extras: { n: 1 },
      })
      const left = trunk.fork('left').append(says('It is.', 'Guard/eye'))
      const right = trunk.fork('right').to('local', './').append(says('It is not.'))
      const merged = await left
        .merge(right, { policy: 'concat' })
        .catch(() => left.merge(right, { policy: 'ours' }))
      for (const session of [trunk, left, right, merged, Session.create('empty')]) {
        assert.equal(await store.sessions.put(session), session)
        await assertKept(store, session)
        await assertKept(await other(), session)
      }
    },

    async 'labels of any text come back as they were'({ store, other }) {
      for (const label of ['a/b~c', 'лес', '\ud800', 'a\u0000b', '"$blob"', '__proto__', ' ']) {
        const session = Session.create('user', 'x').fork(label).append(says('on the branch'))
        await store.sessions.put(session)
        await assertKept(await other(), session)
        await store.sessions.append(session.id, [says('more')])
        assert.equal((await store.sessions.get(session.id)).verify().ok, true)
      }
    },

    async 'putting a session twice changes nothing'({ store }) {
      const session = talk(3)
      await store.sessions.put(session)
      const row = await store.sessions.row(session.id)
      await store.sessions.put(session)
      assert.deepEqual(await store.sessions.row(session.id), row)
      assert.equal((await store.sessions.list()).rows.length, 1)
    },

    async 'a row says what the session is without its chunks'({ store }) {
      const before = Date.now()
      const session = talk(2).fork('side').append(says('done', 'Agent'))
      await store.sessions.put(session, { tag: 'latest' })
      const { created, updated, ...row } = await store.sessions.row(session.id)
      assert.deepEqual(row, {
        id: session.id,
        head: session.head,
        length: 3,
        branch: 'side',
        lineage: session.lineage,
        tags: ['latest'],
      })
      assert.ok(created >= before && updated >= created && updated <= Date.now())
    },

    async 'a session kept before may be put again extended under its id'({ store }) {
      const session = talk(2)
      await store.sessions.put(session)
      const row = await store.sessions.append(session.id, [says('three')])
      const longer = await store.sessions.get(session.id)
      assert.equal(longer.head, row.head)
      await store.sessions.put(longer)
      assert.equal((await store.sessions.row(session.id)).length, 3)
    },

    async 'a value that others extended meanwhile may be put again, and takes nothing back'({
      store,
      other,
    }) {
      const session = talk(2)
      await store.sessions.put(session)
      const second = await other()
      const { head } = await second.sessions.append(session.id, [says('meanwhile')])
      assert.equal(await store.sessions.put(session, { tag: 'seen' }), session)
      const row = await store.sessions.row('seen')
      assert.deepEqual([row.id, row.head, row.length], [session.id, head, 3])
    },

    async 'other chunks under a kept id are refused, and nothing of them is kept'({ store }) {
      const shared = talk(2)
      const kept = shared.append(says('one way'))
      await store.sessions.put(kept)
      for (const extra of [[], [says('and on')], [says('a'), says('b')]]) {
        const text = shared.append(says('another way'), ...extra).toJSONL()
        const lines = text.trimEnd().split('\n')
        const [opening, end] = [JSON.parse(lines[0] as string), JSON.parse(lines.at(-1) as string)]
        const renamed = [
          JSON.stringify({ ...opening, id: kept.id }),
          ...lines.slice(1, -1),
          JSON.stringify({ ...end, session: kept.id }),
        ]
        const diverged = Session.fromJSONL(`${renamed.join('\n')}\n`)
        assert.equal(diverged.id, kept.id)
        const error = await refused(store.sessions.put(diverged, { tag: 'moved' }), 'session-conflict')
        assert.match(error.message, /fork\(\)/)
        await refused(store.sessions.row('moved'), 'unknown-session')
      }
      await assertKept(store, kept)
      assert.equal((await store.gc({ olderThan: 0, dryRun: true })).chunks, 0)
    },

    async 'a session whose chunks do not match their ids is refused'({ store }) {
      const session = talk(2, 'true words')
      const forged = Session.fromJSONL(session.toJSONL().replace('true words', 'other words'))
      const error = await refused(store.sessions.put(forged), 'invalid-chunk')
      assert.match(error.message, /verify\(\)/)
      await store.sessions.put(session)
      await assertKept(store, session)
    },

    async 'append adds behind the newest chunk, whoever wrote it'({ store, other }) {
      const session = talk(1)
      await store.sessions.put(session)
      const second = await other()
      await second.sessions.append(session.id, [says('two')])
      const row = await store.sessions.append(session.id, [says('three'), user('four')])
      const back = await second.sessions.get(session.id)
      assert.deepEqual(texts(back).slice(1), ['two', 'three', 'four'])
      assert.deepEqual([row.head, row.length], [back.head, 4])
      assert.equal(back.verify().ok, true)
    },

    async 'append gives the digests that a session gives'({ store }) {
      const session = talk(2).fork('deep')
      const chunks = [says('one'), { kind: 'note', name: 'n', data: { a: [1] }, at: 3 } as const]
      await store.sessions.put(session)
      const row = await store.sessions.append(session.id, chunks)
      assert.equal(row.head, session.append(...chunks).head)
    },

    async 'append starts an empty session, and an append of nothing adds nothing'({ store }) {
      const session = Session.create('empty')
      await store.sessions.put(session)
      assert.equal((await store.sessions.append(session.id, [])).head, null)
      assert.equal((await store.sessions.append(session.id, [user('first')])).length, 1)
      assert.deepEqual(texts(await store.sessions.get(session.id)), ['first'])
    },

    async 'append with after is refused when that chunk is not the newest'({ store }) {
      const session = talk(1)
      await store.sessions.put(session)
      const after = session.head as string
      const { head } = await store.sessions.append(session.id, [says('two')], { after })
      const error = await refused(
        store.sessions.append(session.id, [says('late')], { after }),
        'session-conflict',
      )
      assert.deepEqual([error.data.head, error.data.after], [head, after])
      assert.equal((await store.sessions.row(session.id)).length, 2)
    },

    async 'of many appends after one chunk exactly one is taken'({ store, other }) {
      const session = talk(1)
      await store.sessions.put(session)
      const after = session.head as string
      const stores = [store, await other()]
      const tries = Array.from({ length: 20 }, (_, i) =>
        (stores[i % 2] ?? store).sessions.append(session.id, [says(`try ${i}`)], { after }),
      )
      const results = await Promise.allSettled(tries)
      assert.equal(results.filter(result => result.status === 'fulfilled').length, 1)
      assert.equal((await store.sessions.row(session.id)).length, 2)
    },

    async 'concurrent appends of two connections lose nothing'({ store, other }) {
      const session = talk(1)
      await store.sessions.put(session)
      const stores = [store, await other()]
      const rows = await Promise.all(
        Array.from({ length: 400 }, (_, i) =>
          (stores[i % 2] ?? store).sessions.append(session.id, [says(`append ${i}`)]),
        ),
      )
      const back = await store.sessions.get(session.id)
      assert.equal(back.length, 401)
      assert.equal(new Set(texts(back)).size, 401)
      assert.equal(back.verify().ok, true)
      for (const row of rows) assert.equal(back.chunks.at(row.length - 1)?.id, row.head)
    },

    async 'one refused append does not disturb those beside it'({ store }) {
      const session = talk(1)
      await store.sessions.put(session)
      const results = await Promise.allSettled([
        store.sessions.append(session.id, [says('good')]),
        store.sessions.append('00000000-unknown', [says('nowhere')]),
        store.sessions.append(session.id, [{ kind: 'whisper' } as never]),
        store.sessions.append(session.id, [says('good, too')]),
      ])
      assert.deepEqual(
        results.map(result => result.status),
        ['fulfilled', 'rejected', 'rejected', 'fulfilled'],
      )
      assert.deepEqual(texts(await store.sessions.get(session.id)).slice(1), ['good', 'good, too'])
    },

    async 'chunks reads from any index to the newest'({ store }) {
      const session = talk(5)
      await store.sessions.put(session)
      const all = await store.sessions.chunks(session.id)
      assert.deepEqual(
        all.map(({ id, index }) => [index, id]),
        session.chunks.map(({ id, index }) => [index, id]),
      )
      assert.deepEqual(
        all.map(({ chunk }) => ({ ...chunk })),
        session.chunks.map(chunk => ({ ...chunk })),
      )
      assert.deepEqual(
        (await store.sessions.chunks(session.id, 3)).map(({ index }) => index),
        [3, 4],
      )
      assert.deepEqual(await store.sessions.chunks(session.id, 5), [])
      assert.deepEqual(await store.sessions.chunks(session.id, 50), [])
    },

    async 'sessions that share history share it in memory when they are read'({ store, other }) {
      const trunk = talk(200)
      const [left, right] = trunk.forks(2) as [Session, Session]
      for (const session of [left.append(says('left')), right.append(says('right'))]) {
        await store.sessions.put(session, { tag: session.branch })
      }
      const fresh = await other()
      const one = await fresh.sessions.get('#0')
      const two = await fresh.sessions.get('#1')
      if (fresh !== store) assert.equal(one.chunks.at(0), two.chunks.at(0))
      assert.equal((await one.diff(two)).shared, 200)
    },
  })
}
