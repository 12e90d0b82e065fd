import { mkdtemp, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test, vi } from 'vitest'
import { importBundle } from '../../src/evidence/bundle/import.ts'
import { readBundle } from '../../src/evidence/bundle/read.ts'
import { verifyBundle } from '../../src/evidence/bundle/verify.ts'
import { writeBundle } from '../../src/evidence/bundle/write.ts'
import { makeKeys, readKeys } from '../../src/evidence/keys.ts'
import { seal } from '../../src/session/jsonl/format.ts'
import { Session } from '../../src/session/session.ts'
import { openStore } from '../../src/store/open.ts'
import { torture } from '../support/torture.ts'
import { storeWithGraph, textOf } from './make.ts'

const { store, out, branches } = await storeWithGraph()
const text = await textOf(writeBundle(store))
const lines = text.trimEnd().split('\n')

async function withKeys<T>(use: (folder: string) => Promise<T>): Promise<T> {
  const folder = await mkdtemp(join(tmpdir(), 'openrath-keys-'))
  try {
    return await use(join(folder, 'keys'))
  } finally {
    await rm(folder, { recursive: true })
  }
}

test('a bundle holds parents before children, prompts, runs, and each shared chunk once', async () => {
  const records = lines.map(line => JSON.parse(line))
  const ids = records.filter(({ type }) => type === 'chunk').map(({ id }) => id)
  expect(new Set(ids).size).toBe(ids.length)
  const sessions = records.filter(({ type }) => type === 'session').map(({ id }) => id)
  expect(sessions.filter(id => id.startsWith('prompt-'))).toHaveLength(1)
  expect(sessions.indexOf(out.id)).toBe(sessions.length - 1)
  expect(text).toContain('x'.repeat(40_000))
  expect(text).not.toContain('$blob')
  const verification = await verifyBundle(text)
  // The forks themselves were never kept, only what was appended to them.
  expect(verification.absent).toEqual(
    expect.arrayContaining(branches.flatMap(branch => branch.lineage.parents)),
  )
  expect(verification).toMatchObject({
    ok: true,
    lines: lines.length,
    sessions: 5,
    runs: 1,
    entries: 2,
    signatures: [],
  })
})

const changes = torture({ short: 300, full: 5000 })

test(`${changes} random single-byte changes are all found`, async () => {
  const signed = await withKeys(async folder => {
    await makeKeys('me', folder)
    return textOf(writeBundle(store, { sign: { ...(await readKeys('me', folder)), by: 'me' } }))
  })
  const bytes = Buffer.from(signed)
  expect(await verifyBundle(bytes)).toMatchObject({ ok: true, signatures: [{ valid: true, by: 'me' }] })
  const random = numbers(20_261_115)
  const lineOf = (at: number) => bytes.subarray(0, at).filter(byte => byte === 0x0a).length + 1
  const missed: number[] = []
  let named = 0
  for (let i = 0; i < changes; i++) {
    // Most of the bytes are of two long payloads; half of the changes go elsewhere.
    const at = i % 2 ? random(bytes.length) : elsewhere(bytes, random)
    const changed = Buffer.from(bytes)
    changed[at] = ((bytes[at] as number) + 1 + random(255)) % 256
    const { ok, problem } = await verifyBundle(changed)
    if (ok) missed.push(at)
    // A line feed that came or went makes one line of two, or two of one.
    if (problem?.line === lineOf(at)) named++
  }
  expect(missed).toEqual([])
  expect(named).toBeGreaterThan(changes * 0.98)
})

test('a byte that decodes to the same character, or the same value, is found in its line', async () => {
  const withReplacement = await openStore('memory:')
  await withReplacement.sessions.put(Session.fromUserMessage('\ufffd'))
  const bytes = Buffer.from(await textOf(writeBundle(withReplacement)))
  const at = bytes.indexOf(Buffer.from('\ufffd'))
  bytes[at] = 0xf0
  expect(new TextDecoder().decode(bytes)).toContain('"\ufffd"')
  expect(await verifyBundle(bytes)).toMatchObject({ ok: false, problem: { line: 3 } })
  const escaped = text.replace('\\u001b', '\\u001B')
  expect(escaped).not.toBe(text)
  expect((await verifyBundle(escaped)).problem?.reason).toMatch(/was altered: it is not written as/)
})

test('what was altered is named by line, session and chunk', async () => {
  const at = lines.findIndex(line => line.includes('"text":"Rain."'))
  const changed = lines.with(at, (lines[at] as string).replace('"Rain."', '"Snow."'))
  const [, short] = branches as [Session, Session]
  expect((await verifyBundle(`${changed.join('\n')}\n`)).problem).toMatchObject({
    line: at + 1,
    session: short.id,
    chunk: short.head,
    index: 3,
    reason: expect.stringMatching(/^Line \d+ was altered: chunk 3 \(assistant\) is recorded as/),
  })
  const run = lines.findIndex(line => line.startsWith('{"type":"run"'))
  const other = lines.with(run, (lines[run] as string).replace('"done"', '"failed"'))
  expect((await verifyBundle(`${other.join('\n')}\n`)).problem).toMatchObject({ line: run + 1, run: 'run-1' })
})

test('lines that were taken out, repeated, swapped or cut off are found', async () => {
  for (let i = 0; i < lines.length; i++) {
    const less = lines.toSpliced(i, 1)
    expect((await verifyBundle(`${less.join('\n')}\n`)).ok, `without line ${i + 1}`).toBe(false)
    const more = lines.toSpliced(i, 0, lines[i] as string)
    expect((await verifyBundle(`${more.join('\n')}\n`)).ok, `line ${i + 1} twice`).toBe(false)
    const swapped = lines.with(i, lines[i - 1] ?? '').with(i - 1, lines[i] as string)
    expect((await verifyBundle(`${swapped.join('\n')}\n`)).ok, `line ${i + 1} moved up`).toBe(false)
  }
  expect((await verifyBundle(text.slice(0, -1))).problem?.reason).toMatch(/no line feed/)
  expect((await verifyBundle('')).problem).toEqual({
    line: 1,
    reason: 'Line 1 is missing: the file is empty.',
  })
  expect((await verifyBundle(`${text}\n`)).ok).toBe(false)
})

test('a journal entry that is dropped with all digests of its own record made anew is found', async () => {
  const entry = lines.findIndex(line => line.startsWith('{"type":"entry"'))
  const { digest: _, ...record } = JSON.parse(lines[entry] as string)
  record.entry.kind = 'route'
  const changed = lines.with(entry, JSON.stringify(seal(record)))
  expect((await verifyBundle(`${changed.join('\n')}\n`)).problem?.reason).toMatch(/names other runs/)
})

test('a bundle comes back as the same sessions and journals, in pieces of any size', async () => {
  const bytes = new TextEncoder().encode(text)
  for (const size of [1009, 65_536]) {
    const bundle = await readBundle(pieces(bytes, size))
    const last = bundle.sessions.at(-1) as Session
    expect(last).toMatchObject({ id: out.id, head: out.head, state: out.state })
    expect(last.lineage).toEqual(out.lineage)
    expect(bundle.runs[0]?.journal).toEqual(await store.runs.journal('run-1'))
  }
})

test('what is imported can be exported again, to the byte but for the times of the journal', async () => {
  const other = await openStore('memory:')
  const bundle = await readBundle(text)
  expect(await importBundle(bundle, other)).toMatchObject({ runs: ['run-1'], skipped: [] })
  expect(await importBundle(bundle, other)).toMatchObject({ runs: [], skipped: ['run-1'] })
  const again = await readBundle(await textOf(writeBundle(other)))
  expect(again.verification.heads).toEqual(bundle.verification.heads)
  const { status, output } = await other.runs.get('run-1')
  expect({ status, output }).toEqual({ status: 'done', output: out.id })
  const known = (run: typeof bundle) => run.runs[0]?.journal.map(({ key, outcome }) => ({ key, outcome }))
  expect(known(again)).toEqual(known(bundle))
})

test('sessions of one moment are written in the same order, whichever came to a store first', async () => {
  const made = ['one', 'other', 'third'].map(text => Session.fromUserMessage(text, { at: 5 }))
  const heads = []
  for (const order of [made, made.toReversed()]) {
    await using kept = await openStore('memory:')
    for (const session of order) {
      const { created } = await kept.sessions.row((await kept.sessions.put(session)).id)
      await vi.waitUntil(() => Date.now() > created, { interval: 1, timeout: 60_000 })
    }
    heads.push((await readBundle(await textOf(writeBundle(kept)))).verification.heads)
  }
  expect(heads[0]).toEqual(heads[1])
})

test('a named session brings its graph, its ancestors, or only its prompts', async () => {
  const [long] = branches as [Session, Session]
  const unrelated = await store.sessions.put(Session.fromUserMessage('Something else'))
  const idsOf = async (how: 'graph' | 'ancestors' | 'alone') => {
    const written = await textOf(writeBundle(store, { sessions: [long.id], with: how }))
    const { ok, heads } = await verifyBundle(written)
    expect(ok).toBe(true)
    return heads.map(({ session }) => session).filter(id => !id.startsWith('prompt-'))
  }
  expect(await idsOf('alone')).toEqual([long.id])
  expect(await idsOf('ancestors')).toEqual([expect.any(String), long.id])
  expect(await idsOf('graph')).toHaveLength(4)
  expect(await idsOf('graph')).not.toContain(unrelated.id)
  await store.sessions.delete(unrelated.id)
})

test('an altered bundle is refused when it is read', async () => {
  const reading = readBundle(text.replace('"Rain."', '"Snow."'))
  await expect(reading).rejects.toMatchObject({ code: 'bundle-altered', data: { index: 3 } })
  const newer = text.replace(
    lines[0] as string,
    JSON.stringify(seal({ type: 'bundle', format: 'openrath/bundle', version: 2, at: 0 })),
  )
  await expect(readBundle(newer)).rejects.toMatchObject({ code: 'format-newer' })
})

test('a session file is verified too', async () => {
  const file = out.toJSONL()
  expect(await verifyBundle(`\ufeff${file.replaceAll('\n', '\r\n')}\n`)).toMatchObject({
    ok: true,
    format: 'openrath/session',
    chunks: out.length,
  })
  const { problem } = await verifyBundle(file.replace('Done.', 'Gone.'))
  expect(problem).toMatchObject({ session: out.id, index: out.length - 1, chunk: out.head })
})

test('a signature holds for one bundle and one key', async () => {
  await withKeys(async folder => {
    const mine = await makeKeys('mine', folder)
    const other = await makeKeys('other', folder)
    expect((await stat(join(folder, 'mine.pem'))).mode & 0o777).toBe(0o600)
    expect((await stat(folder)).mode & 0o777).toBe(0o700)
    const key = { ...(await readKeys('mine', folder)), by: 'me@example.org' }
    const signed = await textOf(writeBundle(store, { sign: key }))
    const { signatures } = await verifyBundle(signed, { keys: [mine.publicKey] })
    expect(signatures).toMatchObject([
      { fingerprint: mine.fingerprint, valid: true, trusted: true, by: key.by },
    ])
    expect(await verifyBundle(signed, { keys: [other.publicKey] })).toMatchObject({
      ok: false,
      signatures: [{ valid: true, trusted: false }],
    })
    expect(await verifyBundle(text, { keys: [mine.publicKey] })).toMatchObject({ ok: false })

    const { digest: _, ...record } = JSON.parse(signed.trimEnd().split('\n').at(-1) as string)
    const forged = `${text}${JSON.stringify(seal({ ...record, at: 1 }))}\n`
    expect((await verifyBundle(forged)).problem?.reason).toMatch(/has not made of this bundle/)
    await expect(makeKeys('mine', folder)).rejects.toThrow(/is there already/)
    await expect(readKeys('nobody', folder)).rejects.toThrow(/There are mine, other/)
    await expect(readKeys('../mine', folder)).rejects.toMatchObject({ code: 'invalid-argument' })
  })
})

function* pieces(bytes: Uint8Array, size: number): Generator<Uint8Array> {
  for (let start = 0; start < bytes.length; start += size) yield bytes.subarray(start, start + size)
}

function elsewhere(bytes: Uint8Array, random: (below: number) => number): number {
  for (;;) {
    const at = random(bytes.length)
    if (bytes[at] !== 0x78 && bytes[at] !== 0x79) return at
  }
}

/** The same numbers on every run: a linear congruential generator. */
function numbers(seed: number): (below: number) => number {
  let state = seed
  return below => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return Math.floor((state / 2 ** 32) * below)
  }
}
