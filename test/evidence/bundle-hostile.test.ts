import { expect, test } from 'vitest'
import { importBundle } from '../../src/evidence/bundle/import.ts'
import { readBundle } from '../../src/evidence/bundle/read.ts'
import { printVerification } from '../../src/evidence/bundle/verification.ts'
import { verifyBundle } from '../../src/evidence/bundle/verify.ts'
import { openStore } from '../../src/store/open.ts'
import { anEntry, aRun, type Forged, forge } from './forge.ts'

const key = Buffer.from('no key').toString('base64')

test.each<[string, Forged, string]>([
  ['has no version', { version: 'one' }, 'Line 1 has the version "one"; a whole number from 1 is needed.'],
  [
    'has one session twice',
    { sessions: [{ id: 'a' }, { id: 'a' }] },
    'Line 4 opens session "a" a second time.',
  ],
  [
    'has sessions that are each other’s parents',
    {
      sessions: [
        { id: 'a', parents: ['b'] },
        { id: 'b', parents: ['a'] },
      ],
    },
    'Line 4 opens session "b" too late: it, or one before it, came from it.',
  ],
  [
    'has a session that is its own parent',
    { sessions: [{ id: 'a', parents: ['a'] }] },
    'Line 2 opens session "a" too late: it, or one before it, came from it.',
  ],
  ['has no run in a run record', { runs: [{ run: null }] }, 'Line 2 is a run record that holds null.'],
  [
    'has a run whose data is text',
    { runs: [{ run: { ...aRun, data: 'x' } }] },
    'Line 2 is a run record whose data is "x".',
  ],
  [
    'has a run of no known status',
    { runs: [{ run: { ...aRun, status: 'lost' } }] },
    'Line 2 is a run record whose status is "lost".',
  ],
  ['has a run twice', { runs: [{ run: aRun }, { run: aRun }] }, 'Line 3 is run "run-9" a second time.'],
  [
    'has an effect with two outcomes',
    { runs: [{ run: aRun, entries: [anEntry, { ...anEntry, outcome: 2 }] }] },
    'Line 4 has the effect "k", occurrence 0, a second time.',
  ],
  [
    'has an entry without a key',
    { runs: [{ run: aRun, entries: [{ run: 'run-9' }] }] },
    'Line 3 is an entry record whose key is undefined.',
  ],
  ['says nothing of what is absent', { absent: 7 }, 'Line 2 has 7 for a list of absent sessions.'],
  [
    'has a signature without a key',
    { signature: { at: 1, signature: key } },
    'Line 3 is a signature without a key, a time or a signature.',
  ],
  [
    'has a signature at no time',
    { signature: { at: 1e300, key, signature: key } },
    'Line 3 is a signature without a key, a time or a signature.',
  ],
])('a bundle that %s is not in order, and not read', async (_, forged, reason) => {
  const verification = await verifyBundle(forge(forged))
  expect(verification).toMatchObject({ ok: false, problem: { reason } })
  expect(printVerification(verification)).toContain(reason)
  await expect(readBundle(forge(forged))).rejects.toMatchObject({ code: 'bundle-altered' })
})

test('a line that is nested without end is a line that is not in order', async () => {
  const [first] = forge({}).split('\n')
  const deep = `${first}\n{"type":"session","x":${'['.repeat(50_000)}${']'.repeat(50_000)}}\n`
  const { problem } = await verifyBundle(deep)
  expect(problem?.reason).toBe('Line 2 is nested too deeply to be read.')
})

test('two bundles that together make a session its own ancestor: the second is refused, and nothing of it kept', async () => {
  const store = await openStore('memory:')
  await importBundle(await readBundle(forge({ sessions: [{ id: 'a', parents: ['b'] }] })), store)
  const second = await readBundle(forge({ sessions: [{ id: 'c' }, { id: 'b', parents: ['c', 'a'] }] }))
  await expect(importBundle(second, store)).rejects.toThrow("each other's ancestors")
  expect((await store.sessions.list()).rows.map(({ id }) => id)).toEqual(['a'])
})

test('an import that was cut off in a run is ended by the next, and one that was not is left as it is', async () => {
  const entries = [anEntry, { ...anEntry, key: 'l' }]
  const bundle = await readBundle(forge({ runs: [{ run: aRun, entries }] }))
  const store = await openStore('memory:')
  const { claim } = store.runs
  let left = 1
  store.runs.claim = async (id, owner) => {
    const log = await claim.call(store.runs, id, owner, 0)
    return {
      ...log,
      append: writes => {
        if (left-- === 0) throw new Error('the power is gone')
        return log.append(writes)
      },
    }
  }
  await expect(importBundle(bundle, store)).rejects.toThrow('the power is gone')
  expect(await importBundle(bundle, store)).toMatchObject({ runs: ['run-9'], skipped: [] })
  expect(await store.runs.get('run-9')).toMatchObject({ status: 'done', owner: null })
  expect((await store.runs.journal('run-9')).map(({ outcome }) => outcome)).toEqual([1, 1])
  expect(await importBundle(bundle, store)).toMatchObject({ runs: [], skipped: ['run-9'] })
})

test('a run that is imported does not say which file is run here', async () => {
  const module = { file: '/somewhere/else.ts', export: 'default' }
  await using store = await openStore('memory:')
  const text = forge({ runs: [{ run: { ...aRun, data: { workflow: 'Agent', module } } }] })
  await importBundle(await readBundle(text), store)
  expect((await store.runs.get(aRun.id)).data).toEqual({ workflow: 'Agent', imported: { module } })
})
