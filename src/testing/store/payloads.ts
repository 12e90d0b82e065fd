import assert from 'node:assert/strict'
import { sha256 } from '../../base/digest.ts'
import type { Json } from '../../base/json.ts'
import { Session } from '../../session/session.ts'
import type { ConformanceCase } from '../conformance.ts'
import { refused } from '../refused.ts'
import { assertKept, casesOn, type OpenStore, talk } from './case.ts'

const large = 200_000

/** Values that a store might take for something else, each small and large. */
const odd: Readonly<Record<string, Json>> = {
  'a long text': 'output\n'.repeat(large / 7),
  'a text of four-byte characters': '😀'.repeat(large / 4),
  'lone surrogates': '\ud800x\udc00'.repeat(large / 3),
  'a byte order mark': `\ufeff${'b'.repeat(large)}`,
  'NUL and separators': '\u0000\u2028\r\n'.repeat(large / 4),
  'what looks like a reference': { $blob: 'a'.repeat(64), as: 'text', size: 1, preview: '' },
  'a reference in a reference': { $blob: { $blob: null, value: { $blob: 'x' } }, value: [{ $blob: 1 }] },
  'a large thing that looks like a reference': { $blob: 'x'.repeat(large), value: 'y'.repeat(large) },
  'a key named __proto__': JSON.parse('{"__proto__":{"a":1},"constructor":"c","toJSON":1}'),
  'a large key named __proto__': JSON.parse(`{"__proto__":{"__proto__":"${'p'.repeat(large)}"},"$blob":0}`),
  'many small parts': Array.from({ length: large / 20 }, (_, i) => ({ i, text: `part ${i}` })),
  'large keys': { ['k'.repeat(large)]: 1, ['l'.repeat(large)]: ['m'.repeat(large)] },
  'base64 where none is meant': { data: 'QUJD'.repeat(large / 4) },
  'nearly base64': { data: `${'QUJD'.repeat(large / 4)}QQ==QQ==` },
  'base64 with unused bits set': { data: `${'QUJD'.repeat(large / 4)}QR==` },
  'deep nesting': JSON.parse(`${'['.repeat(200)}"${'d'.repeat(large)}"${']'.repeat(200)}`),
  numbers: [0, -1, 1e21, 5e-324, 0.1, Number.MAX_SAFE_INTEGER, null, true],
}

export function payloadCases(open: OpenStore): ConformanceCase[] {
  const values = Object.fromEntries(
    Object.entries(odd).map(([name, value]) => [
      `${name} comes back identical`,
      async ({ store, other }: Parameters<Parameters<typeof casesOn>[1][string]>[0]) => {
        const session = talk(1).append(
          { kind: 'note', name: 'n', data: value },
          { kind: 'assistant', toolCalls: [{ id: 'c', name: 't', args: value }] },
          { kind: 'tool-result', callId: 'c', tool: 't', outcome: { kind: 'value', value }, args: value },
          { kind: 'user', text: 'x', extras: { value } },
        )
        await store.sessions.put(session)
        await assertKept(store, session)
        await assertKept(await other(), session)
        await store.sessions.append(session.id, [{ kind: 'note', name: 'again', data: value }])
        const back = await (await other()).sessions.get(session.id)
        assert.deepEqual((back.chunks.at(-1) as { data?: Json }).data, value)
        assert.equal(back.verify().ok, true)
      },
    ]),
  )
  return casesOn(open, {
    ...values,

    async 'images and files come back identical'({ store, other }) {
      const bytes = Uint8Array.from({ length: large }, (_, i) => (i * 7919) >>> 3)
      const session = Session.fromUserMessage([
        { type: 'text', text: 't'.repeat(large) },
        { type: 'image', mediaType: 'image/png', data: bytes },
        { type: 'file', mediaType: 'text/plain', name: 'small.txt', data: bytes.subarray(0, 10) },
      ])
      await store.sessions.put(session)
      await assertKept(await other(), session)
    },

    async 'a large payload is stored once however often it is said'({ store }) {
      const output = 'the same output\n'.repeat(large / 16)
      let session = talk(1)
      for (let i = 0; i < 10; i++) session = session.append({ kind: 'note', name: `${i}`, data: { output } })
      await store.sessions.put(session)
      await store.sessions.delete(session.id)
      const freed = await store.gc({ olderThan: 0 })
      assert.equal(freed.blobs, 1)
      assert.ok(freed.bytes < 2 * large, `${freed.bytes} bytes`)
    },

    async 'a blob is its bytes under their sha256'({ store, other }) {
      const bytes = Uint8Array.from({ length: 70_000 }, (_, i) => i & 0xff)
      const id = await store.blobs.put(bytes)
      assert.equal(id, sha256(bytes))
      assert.deepEqual(new Uint8Array(await (await other()).blobs.get(id)), bytes)
      assert.equal(await store.blobs.has(id), true)
      assert.equal(await store.blobs.put(bytes), id)
      const text = await store.blobs.put('é')
      assert.equal(new TextDecoder().decode(await store.blobs.get(text)), 'é')
      assert.equal((await store.blobs.get(await store.blobs.put(''))).length, 0)
      await refused(store.blobs.get(sha256('nothing')), 'unknown-blob')
      assert.equal(await store.blobs.has(sha256('nothing')), false)
    },

    async 'bytes that change after they were put are kept as they were'({ store }) {
      const bytes = new Uint8Array(1000).fill(1)
      const kept = store.blobs.put(bytes)
      bytes.fill(2)
      const id = await kept
      assert.equal(id, sha256(new Uint8Array(1000).fill(1)))
      assert.equal((await store.blobs.get(id))[0], 1)
    },
  })
}
