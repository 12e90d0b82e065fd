import { DatabaseSync } from 'node:sqlite'
import { expect, it } from 'vitest'
import { verifyBundle } from '../../src/evidence/bundle/verify.ts'
import { dossierOf } from '../../src/evidence/dossier/dossier-of.ts'
import { dossierHtml } from '../../src/evidence/dossier/html/page.ts'
import { verifyPage } from '../../src/evidence/dossier/html/seal.ts'
import { Session } from '../../src/session/session.ts'
import { openStore } from '../../src/store/open.ts'
import { temporaryFolder } from '../sandbox/make.ts'

it('a dossier page is verified: its own text, and the heads that it names against the store', async () => {
  using folder = temporaryFolder()
  const url = `sqlite:${folder.path}/rath.db`
  const session = Session.fromUserMessage('Please <pay> "100".').append({
    kind: 'assistant',
    text: 'Paid 100.',
  })
  let page = ''
  {
    await using store = await openStore(url)
    await store.sessions.put(session)
    page = dossierHtml(await dossierOf(store, session.id))
    expect(await verifyPage(page, store)).toMatchObject({
      ok: true,
      heads: [{ session: session.id, found: 'verified' }],
    })
    await store.sessions.append(session.id, [{ kind: 'user', content: 'Thanks.' }])
    expect(await verifyPage(page, store)).toMatchObject({ ok: true })
  }
  const altered = await verifyPage(page.replaceAll('Paid 100', 'Paid 999'))
  expect(altered).toMatchObject({ ok: false, problem: expect.stringContaining('not as it was written') })
  expect(await verifyPage(page)).toMatchObject({
    ok: false,
    heads: [{ found: 'missing', reason: 'there is no store here' }],
  })
  await using empty = await openStore('memory:')
  expect(await verifyPage(page, empty)).toMatchObject({ ok: false, heads: [{ found: 'missing' }] })
  expect(await verifyPage('<!doctype html><p>hello')).toMatchObject({
    ok: false,
    problem: expect.stringContaining('no seal'),
  })
  const db = new DatabaseSync(`${folder.path}/rath.db`)
  db.exec("UPDATE chunk SET body = replace(body, 'Paid 100', 'Paid 999')")
  db.close()
  await using store = await openStore(url)
  expect(await verifyPage(page, store)).toMatchObject({ ok: false, heads: [{ found: 'altered' }] })
})

it('a file without line feeds is refused before all of it is read', async () => {
  let read = 0
  async function* endless(first: string) {
    for (yield Buffer.from(first); ; read++) yield Buffer.alloc(1024 * 1024, 0x61)
  }
  await expect(verifyBundle(endless(''))).rejects.toThrow(/Line 1 does not begin as a record does/)
  expect(read).toBeLessThan(2)
  await expect(verifyBundle(endless('{'))).rejects.toThrow(/Line 1 is longer than 268435456 bytes/)
  expect(read).toBeLessThan(300)
})
