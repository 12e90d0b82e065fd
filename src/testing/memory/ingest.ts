import assert from 'node:assert/strict'
import { mkdir, symlink, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import { join } from 'node:path'
import type { MemoryCapabilities } from '../../memory/spec.ts'
import { refused } from '../refused.ts'
import { found, listed, type MemoryCases } from './case.ts'

const handbook = [
  '# Handbook',
  '',
  '## Holidays',
  '',
  'Everybody has thirty days of holiday a year.',
  '',
  '## Badges',
  '',
  'A lost badge is reported to the porter.',
  '',
].join('\n')

export function ingestCases({ resources }: MemoryCapabilities): MemoryCases {
  return resources ? { ...takenIn, ...refusals } : notTakenIn
}

const notTakenIn: MemoryCases = {
  async 'a resource that cannot be taken in is refused'({ store }) {
    await refused(store.ingest({ name: 'a.md', text: 'a' }), 'memory-unsupported')
  },
}

const takenIn: MemoryCases = {
  async 'a text is taken in as pieces that are found under memory://resource'({ store, again }) {
    const pieces = await store.ingest({ name: 'handbook.md', text: handbook })
    assert.ok(pieces.length > 0)
    for (const piece of pieces) {
      assert.ok(piece.uri.startsWith('memory://resource/'), piece.uri)
      assert.equal(piece.source.resource, 'handbook.md')
      assert.deepEqual(await store.read(piece.id), piece)
    }
    const other = await again()
    assert.ok((await found(other, 'lost badge'))[0]?.includes('porter'))
    assert.ok((await found(other, 'days of holiday', { scope: 'resource' }))[0]?.includes('thirty days'))
    assert.deepEqual(await listed(other, { scope: 'user' }), [])
  },

  async 'a text taken in again under its name replaces what was there'({ store }) {
    await store.ingest({ name: 'handbook.md', text: handbook })
    await store.ingest({ name: 'other.md', text: 'The canteen opens at noon.' })
    await store.ingest({ name: 'handbook.md', text: handbook.replace('thirty', 'forty') })
    const texts = (await listed(store)).join('\n')
    assert.ok(!texts.includes('thirty'), 'the old text is still there')
    assert.equal(texts.split('forty').length, 2, 'the new text is there once')
    assert.ok(texts.includes('canteen'))
    assert.equal(texts.split('porter').length, 2)
  },

  async 'a long text loses nothing on its way in'({ store }) {
    const words = Array.from({ length: 4000 }, (_, i) => `word${i}`)
    const pieces = await store.ingest({ name: 'long.txt', text: words.join(' ') })
    const kept = pieces.map(piece => piece.text).join(' ')
    for (const word of words) assert.ok(kept.includes(word), word)
    assert.ok((await found(store, 'word3999'))[0]?.includes('word3999'))
  },

  async 'a file below its root is taken in'({ store, folder }) {
    const root = await folder()
    await mkdir(join(root, 'docs'))
    await writeFile(join(root, 'docs', 'handbook.md'), handbook)
    const pieces = await store.ingest({ file: 'docs/handbook.md', root })
    assert.ok(pieces.length > 0)
    assert.ok((await found(store, 'lost badge'))[0]?.includes('porter'))
    await store.ingest({ file: join(root, 'docs', 'handbook.md'), root, name: 'mine.md' })
    assert.ok((await listed(store, { scope: 'resource/mine.md' })).join().includes('porter'))
  },
}

const refusals: MemoryCases = {
  async 'no file outside of its root is taken in, whatever leads to it'({ store, folder }) {
    const outside = await folder()
    const root = await folder()
    await writeFile(join(outside, 'secret.txt'), 'The secret is swordfish.')
    await symlink(join(outside, 'secret.txt'), join(root, 'link.txt'))
    await symlink(outside, join(root, 'folder'))
    const name = outside.split('/').at(-1) as string
    const files = [
      `../${name}/secret.txt`,
      `a/../../${name}/secret.txt`,
      join(outside, 'secret.txt'),
      'link.txt',
      'folder/secret.txt',
      'nothing.txt',
      '.',
      '/etc/hostname',
    ]
    for (const file of files) await refused(store.ingest({ file, root }), 'resource-refused')
    assert.deepEqual(await listed(store), [])
  },

  async 'no address is asked that is not on the list, or that leads into this machine or a private network'({
    store,
  }) {
    let asked = 0
    const server = createServer((_, response) => {
      asked++
      response.end('The secret is swordfish.')
    })
    await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
    const { port } = server.address() as { port: number }
    try {
      const attempts: readonly (readonly [url: string, allow: readonly string[]])[] = [
        [`http://127.0.0.1:${port}/`, []],
        [`http://localhost:${port}/`, ['example.org']],
        [`http://example.org.evil.test:${port}/`, ['example.org']],
        [`http://localhost:${port}/`, ['localhost']],
        [`http://127.0.0.1:${port}/`, ['127.0.0.1']],
        [`http://127.1:${port}/`, ['127.1', '127.0.0.1']],
        [`http://2130706433:${port}/`, ['2130706433', '127.0.0.1']],
        [`http://[::1]:${port}/`, ['[::1]', '::1']],
        [`http://[::ffff:127.0.0.1]:${port}/`, ['[::ffff:127.0.0.1]', '[::ffff:7f00:1]', '::ffff:7f00:1']],
        [`http://0.0.0.0:${port}/`, ['0.0.0.0']],
        ['http://169.254.169.254/latest/meta-data/', ['169.254.169.254']],
        ['http://10.0.0.1/', ['10.0.0.1']],
        ['file:///etc/hostname', ['', 'localhost']],
        ['ftp://example.org/x', ['example.org']],
        [`http://example.org@127.0.0.1:${port}/`, ['example.org']],
        ['not an address', ['not an address']],
      ]
      for (const [url, allow] of attempts) await refused(store.ingest({ url, allow }), 'resource-refused')
      assert.equal(asked, 0, 'a refused address was asked')
      assert.deepEqual(await listed(store), [])
    } finally {
      await new Promise(resolve => server.close(resolve))
    }
  },

  async 'a cancelled intake keeps nothing, and what was there stays'({ store }) {
    await store.ingest({ name: 'a.md', text: 'The first text.' })
    const signal = AbortSignal.abort()
    await refused(store.ingest({ name: 'a.md', text: 'The second text.' }, { signal }), 'cancelled')
    assert.ok((await listed(store)).join().includes('first'))
  },
}
