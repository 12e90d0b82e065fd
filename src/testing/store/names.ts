import assert from 'node:assert/strict'
import { Session } from '../../session/session.ts'
import type { SessionFilter } from '../../store/spec.ts'
import type { ConformanceCase } from '../conformance.ts'
import { refused } from '../refused.ts'
import { casesOn, type OpenStore, says, talk } from './case.ts'

export function nameCases(open: OpenStore): ConformanceCase[] {
  return casesOn(open, {
    async 'a session is found by its id, a unique prefix of it, and a tag'({ store }) {
      const session = talk(1)
      await store.sessions.put(session, { tag: 'mine' })
      for (const name of [session.id, session.id.slice(0, 30), session.id.slice(0, 4), 'mine']) {
        assert.equal((await store.sessions.get(name)).id, session.id, name)
        assert.equal((await store.sessions.row(name)).id, session.id, name)
      }
    },

    async 'an ambiguous prefix is refused with the ids it begins'({ store }) {
      const sessions = [talk(1), talk(1), talk(1)]
      for (const session of sessions) await store.sessions.put(session)
      const error = await refused(store.sessions.get(commonStart(sessions)), 'ambiguous-session')
      for (const { id } of sessions) assert.ok(error.message.includes(id))
      assert.deepEqual(error.data.candidates, sessions.map(({ id }) => id).sort())
    },

    async 'an unknown name is refused with the nearest ids'({ store }) {
      const session = talk(1)
      await store.sessions.put(session)
      const near = `${session.id.slice(0, 30)}zzzzzz`
      const error = await refused(store.sessions.get(near), 'unknown-session')
      assert.deepEqual(error.data.nearest, [session.id])
      assert.ok(error.message.includes(session.id))
      await refused(store.sessions.get('nothing-like-it'), 'unknown-session')
      await refused(store.sessions.get(session.id.slice(0, 3)), 'unknown-session')
    },

    async 'characters with a meaning in a query language are none in a name'({ store }) {
      await store.sessions.put(talk(1))
      for (const name of ['%%%%', '____', "'; --", '\\\\\\\\', '0%']) {
        await refused(store.sessions.row(name), 'unknown-session')
      }
    },

    async 'a tag names one session at a time and may be moved'({ store, other }) {
      const [first, second] = [talk(1), talk(2)]
      await store.sessions.put(first, { tag: 'best' })
      await store.sessions.put(second)
      await (await other()).sessions.tag(second.id.slice(0, -1), 'best')
      assert.equal((await store.sessions.row('best')).id, second.id)
      assert.deepEqual((await store.sessions.row(first.id)).tags, [])
      await store.sessions.tag('best', 'also')
      assert.deepEqual((await store.sessions.row(second.id)).tags, ['also', 'best'])
      await store.sessions.untag('best')
      await refused(store.sessions.row('best'), 'unknown-session')
      assert.deepEqual((await store.sessions.row('also')).tags, ['also'])
      await refused(store.sessions.untag('best'), 'unknown-session')
      await refused(store.sessions.tag('nobody', 'x'), 'unknown-session')
    },

    async 'a tag is moved only from where it is, when asked so, however many try'({ store, other }) {
      const first = Session.fromUserMessage('first')
      await store.sessions.put(first, { tag: 'turn' })
      const next = await Promise.all(
        Array.from({ length: 8 }, (_, i) => store.sessions.put(first.fork().user(`next ${i}`))),
      )
      const beside = await other()
      const ends = await Promise.allSettled(
        next.map(({ id }, i) => (i % 2 ? store : beside).sessions.tag(id, 'turn', { from: first.id })),
      )
      assert.equal(ends.filter(({ status }) => status === 'fulfilled').length, 1)
      const won = next[ends.findIndex(({ status }) => status === 'fulfilled')]
      assert.equal((await beside.sessions.row('turn')).id, won?.id)
      await refused(store.sessions.tag(first.id, 'turn', { from: first.id }), 'session-conflict')
      await store.sessions.put(first, { tag: 'turn', onlyNew: true })
      assert.equal((await store.sessions.row('turn')).id, won?.id)
    },

    async 'deleting forgets the session and its tags, and leaves those that share its chunks'({ store }) {
      const session = talk(3)
      const fork = session.fork('kept')
      await store.sessions.put(session, { tag: 'gone' })
      await store.sessions.put(fork)
      await store.sessions.delete('gone')
      await refused(store.sessions.get('gone'), 'unknown-session')
      await refused(store.sessions.append(session.id, [says('late')]), 'unknown-session')
      assert.deepEqual(
        (await store.sessions.list()).rows.map(row => row.id),
        [fork.id],
      )
      assert.equal((await store.sessions.get(fork.id)).verify().checked, 3)
      await store.gc({ olderThan: 0 })
      assert.equal((await store.sessions.get(fork.id)).verify().checked, 3)
      await refused(store.sessions.delete(session.id), 'unknown-session')
    },

    async 'list gives the newest first, in pages that join without gap'({ store }) {
      const sessions = Array.from({ length: 23 }, () => talk(1))
      for (const session of sessions) await store.sessions.put(session)
      const ids: string[] = []
      let cursor: string | undefined
      do {
        const page = await store.sessions.list({ limit: 5, ...(cursor !== undefined && { cursor }) })
        ids.push(...page.rows.map(row => row.id))
        cursor = page.cursor
      } while (cursor !== undefined)
      assert.deepEqual(ids, sessions.map(({ id }) => id).reverse())
      assert.equal((await store.sessions.list({ limit: 23 })).cursor, undefined)
    },

    async 'a cursor continues where it was, unmoved by what was added since'({ store, other }) {
      const second = await other()
      const sessions = Array.from({ length: 10 }, () => talk(1))
      for (const session of sessions) await store.sessions.put(session)
      const first = await store.sessions.list({ limit: 4 })
      for (let i = 0; i < 5; i++) await second.sessions.put(talk(1))
      await second.sessions.append(sessions[0]?.id as string, [says('moved on')])
      const rest = await store.sessions.list({ cursor: first.cursor as string })
      const ids = [...first.rows, ...rest.rows].map(row => row.id)
      assert.deepEqual(ids, sessions.map(({ id }) => id).reverse())
    },

    async 'list filters by everything a filter can say'({ store }) {
      const start = Date.now()
      const root = Session.fromUserMessage('go', { by: 'Root', label: 'root "quoted"' })
      const fork = root.fork({ label: 'side', by: 'Forker' })
      const merged = await fork.append(says('x')).merge(root.append(says('y')), { by: 'Root' })
      await store.sessions.put(root, { tag: 'tagged' })
      await store.sessions.put(fork)
      await store.sessions.put(merged)
      const list = async (filter: SessionFilter) =>
        (await store.sessions.list(filter)).rows.map(row => row.id).reverse()
      assert.deepEqual(await list({ operation: 'fork' }), [fork.id])
      assert.deepEqual(await list({ by: 'Root' }), [root.id, merged.id])
      assert.deepEqual(await list({ label: 'root "quoted"' }), [root.id])
      // The steps that were merged were not kept: the nearest session before them is the parent then.
      assert.deepEqual(await list({ parent: root.id }), [fork.id, merged.id])
      assert.deepEqual(await list({ parent: merged.lineage.parents[1] as string }), [merged.id])
      assert.deepEqual(await list({ tagged: true }), [root.id])
      assert.deepEqual(await list({ tagged: false }), [fork.id, merged.id])
      assert.deepEqual(await list({ by: 'Root', operation: 'merge', tagged: false }), [merged.id])
      assert.deepEqual(await list({ since: start }), [root.id, fork.id, merged.id])
      assert.deepEqual(await list({ until: start }), [])
      const { created } = await store.sessions.row(merged.id)
      assert.ok((await list({ since: created })).includes(merged.id))
      assert.ok(!(await list({ until: created })).includes(merged.id))
      assert.deepEqual(await list({ by: 'nobody' }), [])
    },
  })
}

function commonStart(sessions: readonly Session[]): string {
  const [first = '', ...rest] = sessions.map(({ id }) => id)
  let length = first.length
  while (!rest.every(id => id.startsWith(first.slice(0, length)))) length--
  return first.slice(0, length)
}
