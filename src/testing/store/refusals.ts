import assert from 'node:assert/strict'
import type { ConformanceCase } from '../conformance.ts'
import { refused } from '../refused.ts'
import { assertKept, type Bench, casesOn, type OpenStore, says, talk } from './case.ts'

const digest = 'a'.repeat(64)

/** Every kind of call, for refusing it. */
const reads = ({ store }: Pick<Bench, 'store'>, id: string) => ({
  get: () => store.sessions.get(id),
  row: () => store.sessions.row(id),
  chunks: () => store.sessions.chunks(id),
  list: () => store.sessions.list(),
  search: () => store.sessions.search('x'),
  blob: () => store.blobs.has(digest),
  run: () => store.runs.list(),
})
const writes = ({ store }: Pick<Bench, 'store'>, id: string) => ({
  put: () => store.sessions.put(talk(1)),
  append: () => store.sessions.append(id, [says('x')]),
  tag: () => store.sessions.tag(id, 'tag'),
  delete: () => store.sessions.delete(id),
  blob: () => store.blobs.put('x'),
  create: () => store.runs.create({ id: 'run' }),
  claim: () => store.runs.claim('run', 'w', 1),
  intend: () => store.runs.intend('run', 1, { key: 'k', occurrence: 0, kind: 'k', request: 1 }),
  gc: () => store.gc(),
})

export function refusalCases(open: OpenStore): ConformanceCase[] {
  return casesOn(open, {
    async 'what was asked before closing is done, and everything after is refused'({ store, other, shared }) {
      const session = talk(1)
      await store.sessions.put(session)
      const second = await other()
      const accepted = [
        store.sessions.append(session.id, [says('two')]),
        store.sessions.put(talk(3), { tag: 'accepted' }),
        store.blobs.put('accepted'),
      ]
      const closed = store.close()
      const late = refused(store.sessions.append(session.id, [says('late')]), 'store-closed')
      await Promise.all([...accepted, closed, late])
      const calls = { ...reads({ store }, session.id), ...writes({ store }, session.id) }
      for (const call of Object.values(calls)) await refused(call(), 'store-closed')
      assert.throws(() => store.sessions.subscribe(() => {}), { code: 'store-closed' })
      await store.close()
      if (!shared) return
      assert.equal((await second.sessions.row(session.id)).length, 2)
      assert.equal((await second.sessions.row('accepted')).length, 3)
    },

    async 'a store opened to read only reads, and refuses every write'({ store, other, shared }) {
      if (!shared) return
      const session = talk(2, 'platypus')
      await store.sessions.put(session)
      await store.sessions.search('platypus')
      const reader = await other({ readOnly: true })
      for (const call of Object.values(reads({ store: reader }, session.id))) await call()
      for (const call of Object.values(writes({ store: reader }, session.id)))
        await refused(call(), 'store-read-only')
      await assertKept(reader, session)
      assert.equal((await reader.sessions.search('platypus')).length, 2)
      await store.sessions.append(session.id, [says('more')])
      assert.equal((await reader.sessions.row(session.id)).length, 3)
    },

    async 'names that are none are refused before anything is asked of the database'({ store }) {
      const session = talk(1)
      await store.sessions.put(session)
      for (const name of ['', 7, null, undefined, {}, ['x']] as never[]) {
        for (const call of [
          () => store.sessions.get(name),
          () => store.sessions.append(name, []),
          () => store.sessions.delete(name),
          () => store.sessions.untag(name),
          () => store.sessions.tag(session.id, name),
          () => store.blobs.get(name),
          () => store.blobs.has(name),
          () => store.runs.get(name),
          () => store.runs.create({ id: name }),
          () => store.runs.claim(name, 'w', 1),
          () => store.runs.claim('r', name, 1),
          () => store.runs.entry(name, 'k', 0),
          () => store.runs.entry('r', name, 0),
        ]) {
          await refused(call(), 'invalid-argument')
        }
      }
      for (const tag of ['two words', 'a\nb', 'x'.repeat(201), '\u0000', '\ud800']) {
        await refused(store.sessions.tag(session.id, tag), 'invalid-argument')
      }
      for (const name of ['a\u0000b', '\ud800']) {
        await refused(store.runs.create({ id: name }), 'invalid-argument')
      }
    },

    async 'values that are none are refused with what was expected'({ store }) {
      const session = talk(1)
      await store.sessions.put(session)
      await store.runs.create({ id: 'r' })
      const { fence } = await store.runs.claim('r', 'w', 1000)
      const odd = 'odd' as never
      const calls = [
        ...[0, -1, 1.5, 1001, Number.NaN, odd].flatMap(limit => [
          () => store.sessions.list({ limit }),
          () => store.sessions.search('x', { limit }),
          () => store.runs.list({ limit }),
        ]),
        ...['', 'x', 'e30', 'W10', 5 as never].map(cursor => () => store.sessions.list({ cursor })),
        ...[-1, 0.5, Number.NaN, odd].map(from => () => store.sessions.chunks(session.id, from)),
        ...[-1, Number.NaN, Number.POSITIVE_INFINITY, odd].map(ms => () => store.runs.claim('r', 'w', ms)),
        ...[-1, 0.5, odd].map(
          occurrence => () => store.runs.intend('r', fence, { key: 'k', occurrence, kind: 'k', request: 1 }),
        ),
        () => store.sessions.list({ operation: 5 as never }),
        () => store.sessions.list({ since: 'yesterday' as never }),
        () => store.sessions.list({ colour: 'red' } as never),
        () => store.sessions.search(7 as never),
        () => store.sessions.put({ id: session.id } as never),
        () => store.sessions.append(session.id, 'text' as never),
        () => store.runs.list({ status: odd }),
        () => store.runs.update('r', fence, { status: odd }),
        () => store.blobs.put(7 as never),
        () => store.gc({ olderThan: -1 }),
        () => store.gc({ olderThan: Number.NaN }),
      ]
      for (const call of calls) await refused(call(), 'invalid-argument').catch(error => fail(call, error))
      await refused(store.sessions.append(session.id, [{ kind: 'whisper' } as never]), 'invalid-chunk')
      const unwritable = { key: 'k', occurrence: 0, kind: 'k', request: undefined as never }
      await refused(store.runs.intend('r', fence, unwritable), 'invalid-json')
      await refused(store.runs.create({ id: 'x', data: { f: () => 1 } as never }), 'invalid-json')
      await assertKept(store, session)
    },
  })
}

function fail(call: () => unknown, error: unknown): never {
  assert.fail(`${String(call)}: ${String(error)}`)
}
