import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { type Bisection, bisect, printBisection } from '../../src/evidence/bisect.ts'
import { Session } from '../../src/session/session.ts'
import { type Files, TestFiles } from './workspace.ts'

const start = () => Session.fromUserMessage('Do it.')
const numbered = (n: number): Files => ({ 'n.txt': `${n}\n`, 'src/kept.txt': 'kept' })
const numberIn = (folder: string) => Number(readFileSync(join(folder, 'n.txt'), 'utf8'))

/** A session whose calls write these numbers, one after the other. */
async function writing(files: TestFiles, numbers: readonly number[]): Promise<Session> {
  let session = start()
  for (let i = 1; i < numbers.length; i++)
    session = await files.call(session, numbered(numbers[i - 1] as number), numbered(numbers[i] as number))
  return session
}

test('the first chunk that fails is found in a logarithmic number of checks, each in a folder of its own', async () => {
  await using files = await TestFiles.make()
  const session = await writing(
    files,
    Array.from({ length: 65 }, (_, i) => i),
  )
  const folders = new Set<string>()
  for (const bad of [1, 2, 31, 32, 33, 63, 64]) {
    const found = await bisect(
      session,
      folder => {
        folders.add(folder)
        expect(readFileSync(join(folder, 'src/kept.txt'), 'utf8')).toBe('kept')
        return numberIn(folder) < bad
      },
      { workspaces: files.root, scratch: files.root },
    )
    expect(found).toMatchObject({
      result: 'found',
      first: { state: bad, cause: 'call', producer: { index: 2 * bad, by: 'Coder' } },
      states: 65,
      changes: 'assumed',
    })
    expect(found.probes.length).toBeLessThanOrEqual(2 + Math.ceil(Math.log2(64)))
  }
  for (const folder of folders) expect(existsSync(folder)).toBe(false)
  expect(readdirSync(files.root)).toEqual(['objects'])
})

test('a last state that passes, and a first one that fails, are said so', async () => {
  await using files = await TestFiles.make()
  const session = await writing(files, [0, 1, 2])
  const options = { workspaces: files.root }
  expect(await bisect(session, () => true, options)).toMatchObject({
    result: 'passes',
    probes: [{ state: 2 }],
  })
  const failing = await bisect(session, () => false, options)
  expect(failing).toMatchObject({ result: 'fails-from-start' })
  expect(failing.probes).toHaveLength(2)
  expect(printBisection(failing)).toMatch(/before the session; 2 of 3 states checked/)
})

test('when it broke more than once, what was found is a true change, and `every` shows them all', async () => {
  await using files = await TestFiles.make()
  const broken = new Set([3, 4, 8, 9])
  const session = await writing(files, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9])
  const check = (folder: string) => !broken.has(numberIn(folder))
  const quick = await bisect(session, check, { workspaces: files.root })
  expect([3, 8]).toContain(quick.first?.state)
  expect(quick.changes).toBe('assumed')
  const every = await bisect(session, check, { workspaces: files.root, every: true })
  expect(every).toMatchObject({
    result: 'found',
    first: { state: 3 },
    changes: 'several',
    others: [{ state: 8 }],
  })
  expect(every.probes).toHaveLength(10)
  expect(printBisection(every)).toMatch(/broke more than once/)
  const once = await bisect(session, folder => numberIn(folder) < 6, {
    workspaces: files.root,
    every: true,
  })
  expect(once).toMatchObject({ first: { state: 6 }, changes: 'once', others: [] })
})

test('files that come back as they were are checked once, and show that it broke before', async () => {
  await using files = await TestFiles.make()
  const session = await writing(files, [0, 9, 1, 2, 3, 9])
  const found = await bisect(session, folder => numberIn(folder) < 5, { workspaces: files.root })
  expect(found).toMatchObject({ result: 'found', changes: 'several' })
  expect(found.probes.filter(({ tree }) => tree === found.first?.tree)).toHaveLength(1)
})

test('states that cannot be told are stepped around, and named when the answer lies among them', async () => {
  await using files = await TestFiles.make()
  const session = await writing(files, [0, 1, 2, 3, 4, 5, 6, 7, 8])
  const check = (skipped: number[]) => (folder: string) =>
    skipped.includes(numberIn(folder)) ? 'skip' : numberIn(folder) < 6
  const around = await bisect(session, check([4, 3]), { workspaces: files.root })
  expect(around).toMatchObject({ result: 'found', first: { state: 6 } })
  const among = await bisect(session, check([5, 6]), { workspaces: files.root })
  expect(among.result).toBe('suspects')
  expect(among.suspects.map(({ state }) => state)).toEqual([5, 6, 7])
})

test('behind a merge the side that broke it is searched; when each side passes, it is the merge', async () => {
  await using files = await TestFiles.make()
  const base: Files = { a: '0', b: '0' }
  const shared = await files.call(start(), base, base)
  const left = await files.call(shared.fork('left'), base, { a: '1', b: '0' }, 'Left')
  let right = await files.call(shared.fork('right'), base, { a: '0', b: '1' }, 'Right')
  right = await files.call(right, { a: '0', b: '1' }, { a: '0', b: '2' }, 'Right again')
  const merged = await left.merge(right)
  const text = (folder: string, name: string) => readFileSync(join(folder, name), 'utf8')
  const run = (check: (folder: string) => boolean): Promise<Bisection> =>
    bisect(merged, check, { workspaces: files.root })
  expect(await run(folder => text(folder, 'b') !== '2')).toMatchObject({
    result: 'found',
    first: { cause: 'call', producer: { by: 'Right again', branch: 'right' } },
  })
  expect(await run(folder => text(folder, 'a') === '0')).toMatchObject({
    first: { producer: { by: 'Left' } },
  })
  expect(await run(folder => text(folder, 'a') === '0' || text(folder, 'b') === '0')).toMatchObject({
    first: { cause: 'merge', producer: { kind: 'merge' } },
  })
})

test('a change by somebody else is named as one', async () => {
  await using files = await TestFiles.make()
  let session = await files.call(start(), numbered(0), numbered(1))
  session = await files.call(session, numbered(7), numbered(8))
  const found = await bisect(session, folder => numberIn(folder) < 5, { workspaces: files.root })
  expect(found).toMatchObject({ first: { cause: 'drift', producer: { index: 4 } } })
  expect(printBisection(found)).toMatch(/by a person or another program, seen at chunk 4/)
})

test('a check that throws, answers nonsense or is cancelled ends the search and leaves no folder', async () => {
  await using files = await TestFiles.make()
  const session = await writing(files, [0, 1])
  const options = { workspaces: files.root, scratch: files.root }
  const oops = new Error('oops')
  await expect(bisect(session, () => Promise.reject(oops), options)).rejects.toBe(oops)
  await expect(bisect(session, () => 0 as never, options)).rejects.toThrow(/A check answers 'pass'/)
  const cancel = new AbortController()
  const check = () => {
    cancel.abort()
    return true
  }
  await expect(bisect(session, check, { ...options, signal: cancel.signal })).rejects.toMatchObject({
    code: 'cancelled',
  })
  await expect(bisect(start(), () => true, options)).rejects.toThrow(/has no files/)
  expect(readdirSync(files.root)).toEqual(['objects'])
})
