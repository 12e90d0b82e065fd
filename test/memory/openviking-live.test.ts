import { describe, expect, test } from 'vitest'
import { newId } from '../../src/base/ids.ts'
import { openvikingBackend } from '../../src/memory/drivers/openviking/driver.ts'
import { Session } from '../../src/session/index.ts'

const url = process.env.OPEN_VIKING_URL
if (!url) console.info('The live tests of OpenViking are left out: OPEN_VIKING_URL is not set.')

// Each test leaves the server as it was. Scores and extraction depend on the server's models, so little is asked of them.
describe.skipIf(!url)('a live OpenViking server', () => {
  const backend = openvikingBackend()
  const scope = `test/${newId()}`

  test('keeps, reads, updates, finds, lists and forgets', async () => {
    await using store = await backend.open({ extract: false })
    try {
      const [kept] = await store.write([
        { text: 'The heron nests on the roof of the library.', scope, tags: ['bird'] },
      ])
      const id = kept?.id as string
      expect(await store.read(id)).toEqual(kept)
      expect(await store.read(kept?.uri as string)).toEqual(kept)
      expect((await store.find('Where does the heron nest?', { scope, floor: 0 })).hits[0]?.id).toBe(id)
      expect((await store.list({ scope, tags: ['bird'] })).entries).toEqual([kept])
      const updated = await store.update(id, { text: 'The heron has left.', category: 'event' })
      expect(await store.read(id)).toEqual(updated)
      expect(await store.tree(`memory://${scope}`)).toMatchObject({ entries: 1 })
    } finally {
      expect(await store.forget({ scope })).toBe(1)
    }
    expect((await store.list({ scope })).entries).toEqual([])
  })

  test('keeps a session once', async () => {
    await using store = await backend.open({ extract: false })
    const session = Session.fromUserMessage(`Where is the ladder? ${newId()}`)
    try {
      expect((await store.commit(session, { scope })).written).toHaveLength(1)
      expect((await store.commit(session, { scope })).written).toEqual([])
    } finally {
      await store.forget({ scope })
    }
  })

  test('takes in a text', async () => {
    await using store = await backend.open({ extract: false })
    const name = `openrath-${newId()}.md`
    try {
      const pieces = await store.ingest({
        name,
        text: '# Badges\n\nA lost badge is reported to the porter.\n',
      })
      expect(pieces.map(piece => piece.text).join()).toContain('porter')
    } finally {
      await store.forget({ scope: `resource/${name}` })
    }
  })
})
