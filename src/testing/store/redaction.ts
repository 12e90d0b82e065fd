import assert from 'node:assert/strict'
import { toBase64 } from '../../base/base64.ts'
import type { Json } from '../../base/json.ts'
import { Session } from '../../session/session.ts'
import type { ConformanceCase } from '../conformance.ts'
import { refused } from '../refused.ts'
import { assertKept, casesOn, type OpenStore, says, talk, user } from './case.ts'

const key = 'sk-conformance-0123456789abcdef'
const long = `sk-${'conformance-long-'.repeat(8)}`
const mark = '[redacted:API_KEY]'

export function redactionCases(open: OpenStore): ConformanceCase[] {
  const secrets = { API_KEY: key, LONG_KEY: long }
  return [
    ...casesOn(open, defaults, { secrets }),
    ...casesOn(open, awkward, { secrets: { PASSWORD: 'assistant' } }),
    ...casesOn(open, hooked, { redact: hook }),
    ...casesOn(open, emptying, { redact: text => (text === 'nobody' ? '' : text) }),
  ]
}

const defaults: Parameters<typeof casesOn>[1] = {
  async 'secrets are taken out of chunks, wherever in them they are'({ store, other }) {
    const bytes = new TextEncoder().encode(`KEY=${key}\n`)
    const binary = Uint8Array.from([0xff, 0x00, ...bytes, 0xfe])
    const session = Session.fromUserMessage(`use ${key} and ${key}!`, { label: key, by: `Agent/${key}` })
      .fork(`with ${key}`)
      .append(
        {
          kind: 'assistant',
          reasoning: key,
          toolCalls: [{ id: 'c', name: 'run', args: { env: [{ [key]: key }] } }],
        },
        {
          kind: 'tool-result',
          callId: 'c',
          tool: 'run',
          outcome: { kind: 'value', value: `out ${key}`.repeat(5000) },
        },
        { kind: 'user', content: [{ type: 'file', mediaType: 'text/plain', data: bytes }] },
        { kind: 'user', content: [{ type: 'image', mediaType: 'image/png', data: binary }] },
        { kind: 'error', error: 'http', message: `401 for ${key}`, detail: { header: `Bearer ${key}` } },
        { kind: 'note', name: 'n', data: { data: toBase64(bytes) }, extras: { key } },
      )
    const kept = await store.sessions.put(session)
    assert.notEqual(kept.head, session.head)
    assert.equal(kept.length, session.length)
    assertClean(kept.toJSONL())
    await assertKept(await other(), kept)
    assert.equal(kept.chunks.at(0)?.text, `use ${mark} and ${mark}!`)
    assert.equal(kept.branch, `with ${mark}`)
    await store.sessions.append(kept.id, [
      says(`again ${key}`),
      { kind: 'note', name: 'n', data: { [key]: 1 } },
    ])
    const back = await (await other()).sessions.get(kept.id)
    assertClean(back.toJSONL())
    assert.equal(back.verify().ok, true)
    assert.deepEqual(await store.sessions.search('0123456789abcdef'), [])
  },

  async 'a session without secrets is kept as it is'({ store }) {
    const session = talk(3).append({ kind: 'note', name: 'n', data: { key: key.slice(0, -1) } })
    assert.equal(await store.sessions.put(session), session)
    await assertKept(store, session)
  },

  async 'a session with a redacted chunk goes on from it'({ store }) {
    const given = talk(2).append(user(`my key is ${key}`))
    const kept = await store.sessions.put(given)
    const onward = kept.append(says('thank you'))
    assert.equal(await store.sessions.put(onward), onward)
    const fork = await store.sessions.put(given.fork('side').append(says('no')))
    const again = await store.sessions.put(given.append(says('from the value that was given')))
    for (const session of [onward, fork, again]) {
      await assertKept(store, session)
      assert.equal(session.chunks.at(2)?.id, kept.chunks.at(2)?.id)
    }
    const row = await store.sessions.append(kept.id, [says('more')], { after: kept.head as string })
    assert.equal(row.length, 4)
  },

  async 'a summary still stands for what it replaced when that held a secret'({ store }) {
    const given = talk(1).append(user(`my key is ${key}`), says('noted'))
    const replaced = given.chunks.map(chunk => chunk.id)
    const session = given.append({ kind: 'compress', replaced, summary: 'they talked' })
    const kept = await store.sessions.put(session)
    assert.equal(kept.messages().length, session.messages().length)
    assert.equal(kept.text, 'they talked')
    await assertKept(store, kept)
  },

  async 'secrets are taken out of runs and journals'({ store, other }) {
    const data = { key, nested: [{ [key]: `${key}${key}` }] }
    await store.runs.create({ id: 'r', data })
    const { fence } = await store.runs.claim('r', 'w', 1000)
    await store.runs.update('r', fence, { data: { ...data, updated: true } })
    await store.runs.intend('r', fence, {
      key: 'k',
      occurrence: 0,
      kind: 'model',
      request: { headers: data },
    })
    await store.runs.conclude('r', fence, 'k', 0, `${'x'.repeat(50_000)}${key}`)
    const second = await other()
    assertClean(JSON.stringify([await second.runs.get('r'), await second.runs.journal('r')]))
    const outcome = (await second.runs.entry('r', 'k', 0))?.outcome as string
    assert.ok(outcome.endsWith(mark))
  },

  async 'a value is cleaned at once, to what is kept of it'({ store }) {
    const data = { key, nested: [{ [key]: `${key}${key}` }] }
    const { data: kept } = await store.runs.create({ id: 'r', data })
    assert.deepEqual(store.clean(data), kept)
    const session = talk(1).append(user(`my key is ${key}`), says('noted'))
    const clean = store.clean(session)
    assert.equal(clean.id, session.id)
    assert.equal(clean.head, (await store.sessions.put(session)).head)
    assert.equal(store.clean(clean).head, clean.head)
  },

  async 'secrets are taken out of blobs, text and binary'({ store }) {
    const read = async (bytes: Uint8Array | string) =>
      Buffer.from(await store.blobs.get(await store.blobs.put(bytes))).toString('latin1')
    assert.equal(await read(`a ${key} b`), `a ${mark} b`)
    assert.equal(await read(Buffer.from(`\xff\x00${key}\xfe`, 'latin1')), `\xff\x00${mark}\xfe`)
  },

  async 'errors name no secret, in whole or cut short'({ store }) {
    const errors = [
      await refused(store.sessions.get(key), 'unknown-session'),
      await refused(store.sessions.get(long), 'unknown-session'),
      await refused(store.runs.get(key), 'unknown-run'),
      await refused(store.blobs.get(key), 'invalid-argument'),
      await refused(store.sessions.append(key, [user('x')]), 'unknown-session'),
      await refused(store.sessions.list({ cursor: key }), 'invalid-argument'),
      await refused(store.sessions.tag('x', `${key} ${key}`), 'invalid-argument'),
    ]
    for (const error of errors) {
      assertClean(error.message)
      assertClean(JSON.stringify(error.data))
      assertClean(String((error.cause as Error | undefined)?.message))
    }
  },
}

const awkward: Parameters<typeof casesOn>[1] = {
  async 'a secret that is an ordinary word does not break what holds a chunk together'({ store, other }) {
    const session = talk(1).append({ kind: 'assistant', text: 'an assistant', by: 'assistant' })
    const kept = await store.sessions.put(session)
    assert.equal(kept.chunks.at(1)?.kind, 'assistant')
    assert.equal(kept.text, 'an [redacted:PASSWORD]')
    await assertKept(await other(), kept)
  },
}

const hook = (text: string) => text.replaceAll(/[0-9a-f]{32,}/g, '[hex]').replaceAll('swear', '*****')

const hooked: Parameters<typeof casesOn>[1] = {
  async 'a hook sees every text before it is written'({ store, other }) {
    const session = Session.fromUserMessage('I swear', { label: 'swear' }).append({
      kind: 'tool-result',
      callId: 'c',
      tool: 't',
      outcome: { kind: 'value', value: { swear: ['swear'], hex: 'ab'.repeat(20) } },
    })
    await store.sessions.put(session)
    await store.sessions.append(session.id, [says('they swear')])
    await store.runs.create({ id: 'r', data: { swear: true } })
    const second = await other()
    const written = [
      (await second.sessions.get(session.id)).toJSONL(),
      JSON.stringify(await second.runs.get('r')),
    ]
    assert.doesNotMatch(written.join(), /swear|(ab){20}/)
    const blob = await store.blobs.put('I swear')
    assert.equal(new TextDecoder().decode(await second.blobs.get(blob)), 'I *****')
  },

  async 'a hook that takes out digests does not reach those that hold a session together'({ store, other }) {
    const trunk = talk(2)
    const left = trunk.fork('l').append(user('I swear'), says('do not'))
    const merged = await left.merge(trunk.fork('r').append(says('why')))
    const kept = await store.sessions.put(merged)
    await assertKept(await other(), kept)
    const replaced = kept.chunks.slice(0, 2).map(chunk => chunk.id)
    await store.sessions.append(kept.id, [{ kind: 'compress', replaced, summary: 'they swear' }])
    const back = await (await other()).sessions.get(kept.id)
    assert.deepEqual((back.chunks.at(-1) as unknown as { replaced: Json }).replaced, replaced)
  },
}

const emptying: Parameters<typeof casesOn>[1] = {
  async 'a hook that would leave a chunk unreadable is refused'({ store }) {
    const session = talk(1)
    await store.sessions.put(session)
    const named = { kind: 'user', text: 'x', by: 'nobody' } as const
    await refused(store.sessions.put(session.append(named)), 'invalid-chunk')
    await refused(store.sessions.append(session.id, [named]), 'invalid-chunk')
    assert.equal((await store.sessions.row(session.id)).length, 1)
  },
}

function assertClean(text: string): void {
  assert.ok(!text.includes(key.slice(0, 20)) && !text.includes(long.slice(0, 20)), text.slice(0, 500))
}
