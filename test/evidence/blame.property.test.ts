import fc from 'fast-check'
import { expect, test } from 'vitest'
import { blame } from '../../src/evidence/blame.ts'
import { Session } from '../../src/session/session.ts'
import { TestFiles } from './workspace.ts'

// Every line says who wrote it, so that blame can be checked against the lines themselves.

type Edit = { readonly at: number; readonly remove: number; readonly add: number }

const edit = fc.record({
  at: fc.nat({ max: 100 }),
  remove: fc.nat({ max: 2 }),
  add: fc.integer({ min: 0, max: 3 }),
})
const script = fc.record({
  before: fc.integer({ min: 4, max: 12 }),
  trunk: fc.array(edit, { maxLength: 3 }),
  branches: fc.array(fc.array(edit, { minLength: 1, maxLength: 2 }), { maxLength: 3 }),
  after: fc.array(edit, { maxLength: 2 }),
})

test('whatever was edited, forked and merged, each line has the author that wrote it', async () => {
  await using files = await TestFiles.make()
  await fc.assert(
    fc.asyncProperty(script, async ({ before, trunk, branches, after }) => {
      const start = Array.from({ length: before }, (_, i) => `before ${i}`)
      const root = await play(files, Session.fromUserMessage('Go.'), start, trunk, 'trunk')
      let session = root.session
      if (branches.length > 0) {
        const sides: Session[] = []
        for (const [i, edits] of branches.entries())
          sides.push((await play(files, root.session.fork(`b${i}`), root.lines, edits, `b${i}`)).session)
        const [first, ...others] = sides as [Session, ...Session[]]
        session = others.length > 0 ? await first.merge(others) : first
      }
      const merged = (await linesOf(session, files)).map(({ text }) => text)
      session = (await play(files, session, merged, after, 'last')).session
      for (const { text, source, producer } of await linesOf(session, files)) {
        if (/^[<=>|]{7}/.test(text)) expect(source).toBe('merge')
        else expect(source === 'before' ? 'before' : producer?.by, text).toBe(text.split(' ')[0])
      }
    }),
    { numRuns: 30, seed: 9 },
  )
})

async function play(
  files: TestFiles,
  from: Session,
  start: readonly string[],
  edits: readonly Edit[],
  by: string,
) {
  let lines = start
  let session = await files.call(from, fileOf(lines), fileOf(lines), by)
  for (const [i, { at, remove, add }] of edits.entries()) {
    const next = lines.toSpliced(
      at % (lines.length + 1),
      remove,
      ...Array.from({ length: add }, (_, j) => `${by} ${i}.${j}`),
    )
    session = await files.call(session, fileOf(lines), fileOf(next), by)
    lines = next
  }
  return { session, lines }
}

function linesOf(session: Session, files: TestFiles) {
  return blame(session, { path: 'a.txt' }, { workspaces: files.root })
}

function fileOf(lines: readonly string[]) {
  return { 'a.txt': lines.map(line => `${line}\n`).join('') }
}
