import assert from 'node:assert/strict'
import { Session } from '../../session/session.ts'
import { refused } from '../refused.ts'
import { found, listed, type MemoryCases, remembered } from './case.ts'

const talk = () =>
  Session.fromUserMessage('Which port does the staging proxy listen on?')
    .append({ kind: 'assistant', text: 'The staging proxy listens on port 8443.' })
    .append({ kind: 'user', text: 'And who looks after the printer?' })
    .append({ kind: 'assistant', text: 'Bruno looks after the printer.' })

export function commitCases(): MemoryCases {
  return {
    async 'what a session said is found again, with where it was said'({ store, again }) {
      const session = talk()
      const { written, from } = await store.commit(session)
      assert.ok(written.length > 0)
      const chunks = new Set<string>(session.chunks.map(chunk => chunk.id))
      assert.ok(from.length > 0)
      for (const id of from) assert.ok(chunks.has(id), `${id} is no chunk of the session`)
      for (const one of [store, await again()]) {
        const { hits } = await one.find('port of the staging proxy')
        assert.ok(
          hits.some(hit => hit.text.includes('8443')),
          hits.map(hit => hit.text).join(' | '),
        )
      }
      for (const entry of written) assert.deepEqual(await store.read(entry.id), entry)
    },

    async 'a session committed again writes nothing, one that has grown only what is new'({ store, again }) {
      const session = talk()
      const { written } = await store.commit(session)
      assert.deepEqual((await store.commit(session)).written, [])
      assert.deepEqual((await (await again()).commit(session)).from, [])
      const grown = session
        .append({ kind: 'user', text: 'Where is the ladder?' })
        .append({ kind: 'assistant', text: 'The ladder stands behind the greenhouse.' })
      const more = await store.commit(grown)
      const old = new Set<string>(session.chunks.map(chunk => chunk.id))
      assert.ok(more.written.length > 0)
      assert.ok(
        more.from.every(id => !old.has(id)),
        'an old chunk was committed again',
      )
      assert.ok((await found(store, 'ladder greenhouse'))[0]?.includes('greenhouse'))
      assert.equal((await store.list({ limit: 100 })).entries.length, written.length + more.written.length)
    },

    async 'an empty session commits to nothing'({ store }) {
      assert.deepEqual(await store.commit(Session.create('empty')), { written: [], from: [], settled: 0 })
      assert.deepEqual(await listed(store), [])
    },

    async 'entries that were made of a session elsewhere are written instead of its turns'({ store }) {
      const session = talk()
      const source = { chunks: [session.chunks.at(1)?.id as string] }
      const { written, from } = await store.commit(session, {
        scope: 'user/ada',
        entries: [{ text: 'Staging: port 8443.', category: 'fact', key: 'port', source }],
      })
      assert.deepEqual(
        written.map(({ text, scope }) => [text, scope]),
        [['Staging: port 8443.', 'user/ada']],
      )
      assert.deepEqual(from, source.chunks)
      assert.deepEqual(await listed(store), ['Staging: port 8443.'])
      assert.deepEqual((await store.commit(session, { entries: [] })).written, [])
    },

    async 'the failure of a tool is found again'({ store }) {
      const session = Session.fromUserMessage('Deploy the shop.').append({
        kind: 'tool-result',
        callId: '1',
        tool: 'deploy',
        args: { service: 'shop' },
        outcome: { kind: 'error', error: 'Error', message: 'The registry certificate has expired.' },
      })
      await store.commit(session)
      assert.ok((await found(store, 'registry certificate'))[0]?.includes('certificate has expired'))
    },

    async 'a cancelled commit keeps nothing'({ store }) {
      await refused(store.commit(talk(), { signal: AbortSignal.abort() }), 'cancelled')
      assert.deepEqual(await listed(store), [])
    },

    async 'what was remembered before stays beside what is committed'({ store }) {
      const id = await remembered(store, { text: 'The proxy is an nginx.', scope: 'agent/researcher' })
      await store.commit(talk())
      assert.equal((await store.read(id))?.text, 'The proxy is an nginx.')
      assert.ok((await found(store, 'nginx')).includes('The proxy is an nginx.'))
    },
  }
}
