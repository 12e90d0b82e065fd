import { expect, test } from 'vitest'
import { compareSessions, printSessionDiff } from '../../src/evidence/session-diff.ts'
import { Session } from '../../src/session/session.ts'
import { storeWithGraph } from './make.ts'
import { type Files, TestFiles } from './workspace.ts'

test('two branches are compared by chunks, files and cost since their ancestor', async () => {
  await using files = await TestFiles.make()
  const base: Files = { a: '0\n', b: '0\n' }
  const shared = await files.call(Session.fromUserMessage('Do it.'), {}, base)
  const left = await files.call(shared.fork('left'), base, { a: '1\n', b: '0\n' })
  const right = (await files.call(shared.fork('right'), base, { b: '0\n', c: '0\n' })).append({
    kind: 'assistant',
    text: '\u001b[31mDone.',
    usage: { inputTokens: 7, cost: 0.5 },
  })
  const diff = await compareSessions(left, right, files.objects)
  expect(diff).toMatchObject({
    ancestor: shared.head,
    shared: 3,
    ours: { branch: 'left', files: [{ path: 'a', change: 'modified' }], usage: { totalTokens: 0 } },
    theirs: {
      branch: 'right',
      files: [{ path: 'c', from: 'a', change: 'renamed' }],
      usage: { totalTokens: 7, cost: 0.5 },
    },
  })
  expect(diff.ours.chunks).toHaveLength(2)
  expect(diff.files?.map(({ path, change }) => `${change} ${path}`)).toEqual(['deleted a', 'added c'])
  const text = printSessionDiff(diff)
  expect(text).toMatch(/^3 chunks in common, up to [0-9a-f]{12}\n< /)
  expect(text).toContain('> ')
  expect(text).not.toContain('\u001b')
})

test('without files what the calls recorded is told, and unrelated sessions have nothing in common', async () => {
  const { branches } = await storeWithGraph()
  const [long, short] = branches as [Session, Session]
  expect(await compareSessions(long, short)).toMatchObject({
    shared: 1,
    ours: { usage: { cost: 0.25 }, files: [] },
    files: undefined,
  })
  const alone = await compareSessions(long, Session.fromUserMessage('Else'))
  expect(alone.ancestor).toBeUndefined()
  expect(printSessionDiff(alone)).toMatch(/^nothing in common/)
})
