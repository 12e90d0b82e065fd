import { expect, test } from 'vitest'
import { blame, printBlamedChunk, printBlamedLines } from '../../src/evidence/blame.ts'
import { Session } from '../../src/session/session.ts'
import { openStore } from '../../src/store/open.ts'
import { renamed, storeWithGraph } from './make.ts'
import { type Files, TestFiles } from './workspace.ts'

const start = () => Session.fromUserMessage('Do it.')
const file = (...lines: string[]) => `${lines.join('\n')}\n`

/** Who wrote each line. */
async function authors(session: Session, path: string, files: TestFiles): Promise<string[]> {
  const lines = await blame(session, { path }, { workspaces: files.root })
  return lines.map(({ source, producer }) => (source === 'call' ? `${producer?.by}` : source))
}

test('each line has the call that wrote it, and lines from before have none', async () => {
  await using files = await TestFiles.make()
  const first: Files = { 'a.txt': file('one', 'two', 'three') }
  const second: Files = { 'a.txt': file('one', 'TWO', 'three') }
  const third: Files = { 'a.txt': file('zero', 'one', 'TWO', 'three') }
  let session = await files.call(start(), first, second, 'Ann')
  session = await files.call(session, second, third, 'Bob')
  const lines = await blame(session, { path: './a.txt' }, { workspaces: files.root })
  expect(lines.map(({ text, source }) => [text, source])).toEqual([
    ['zero', 'call'],
    ['one', 'before'],
    ['TWO', 'call'],
    ['three', 'before'],
  ])
  expect(lines[2]?.producer).toEqual({
    chunk: session.chunks.at(2)?.id,
    index: 2,
    kind: 'tool-result',
    at: expect.any(Number),
    by: 'Ann',
    branch: '',
    tool: 'edit',
    answer: session.chunks.at(1)?.id,
    model: 'model-of-Ann',
  })
  expect(await blame(session, { path: 'a.txt', line: 3 }, { workspaces: files.root })).toEqual([lines[2]])
  expect(printBlamedLines([{ line: 1, text: 'one\r', path: 'a.txt', source: 'before' }])).toMatch(/ one$/)
  expect(printBlamedLines(lines).split('\n')[1]).toMatch(/^before the session +2 one$/)
})

test('a line of a merged file belongs to the branch that wrote it, and a settled conflict to the merge', async () => {
  await using files = await TestFiles.make()
  const base: Files = { 'a.txt': file('1', '2', '3', '4', '5', '6', '7') }
  const shared = await files.call(start(), base, base, 'Nobody')
  const left = await files.call(
    shared.fork('left'),
    base,
    { 'a.txt': file('left', '2', '3', '4', '5', '6', '7 L') },
    'Left',
  )
  const right = await files.call(
    shared.fork('right'),
    base,
    { 'a.txt': file('1', '2', '3', 'right', '5', '6', '7 R') },
    'Right',
  )
  const merged = await left.merge(right)
  const lines = await blame(merged, { path: 'a.txt' }, { workspaces: files.root })
  expect(
    lines.map(({ text, producer, source }) => [text, source === 'call' ? producer?.branch : source]),
  ).toEqual([
    ['left', 'left'],
    ['2', 'before'],
    ['3', 'before'],
    ['right', 'right'],
    ['5', 'before'],
    ['6', 'before'],
    [expect.stringMatching(/^<{7}/), 'merge'],
    ['7 L', 'left'],
    ['=======', 'merge'],
    ['7 R', 'right'],
    [expect.stringMatching(/^>{7}/), 'merge'],
  ])
})

test('lines are followed through a merge of merges, and through the store when a merge left chunks out', async () => {
  await using files = await TestFiles.make()
  const store = await openStore('memory:')
  const base: Files = { 'a.txt': file(...'123456789'.split('')) }
  const with_ = (...changes: [number, string][]): Files => {
    const lines = '123456789'.split('')
    for (const [at, text] of changes) lines[at - 1] = text
    return { 'a.txt': file(...lines) }
  }
  const shared = await files.call(start(), base, base)
  const one = await files.call(shared.fork('one'), base, with_([1, 'one']), 'One')
  const inner = await files.call(shared.fork('two'), base, with_([4, 'two']), 'Two')
  const x = await files.call(inner.fork('x'), with_([4, 'two']), with_([4, 'two'], [6, 'x']), 'X')
  const y = await files.call(inner.fork('y'), with_([4, 'two']), with_([4, 'two'], [9, 'y']), 'Y')
  const nested = await one.merge(await x.merge(y))
  expect(await authors(nested, 'a.txt', files)).toEqual([
    'One',
    'before',
    'before',
    'Two',
    'before',
    'X',
    'before',
    'before',
    'Y',
  ])

  for (const session of [x, y]) await store.sessions.put(session)
  const written = await x.merge(y, { policy: () => [{ kind: 'note', name: 'joined' }] })
  expect((await authors(written, 'a.txt', files)).filter(author => author === 'merge')).toHaveLength(2)
  const lines = await blame(written, { path: 'a.txt' }, { workspaces: files.root, store })
  expect(lines.map(({ producer }) => producer?.by).filter(Boolean)).toEqual(['Two', 'X', 'Y'])
})

test('a renamed file keeps its authors, also when it was edited in the same step', async () => {
  await using files = await TestFiles.make()
  const old: Files = { 'src/a.txt': file('one', 'two', 'three', 'four') }
  const edited: Files = { 'src/a.txt': file('one', 'two', 'three', 'FOUR') }
  const moved: Files = { 'lib/b.txt': file('one', 'two', 'three', 'FOUR') }
  const both: Files = { 'c.txt': file('one', 'two', 'THREE', 'FOUR') }
  let session = await files.call(start(), old, edited, 'Ann')
  session = await files.call(session, edited, moved, 'Mover')
  session = await files.call(session, moved, both, 'Both')
  const lines = await blame(session, { path: 'c.txt' }, { workspaces: files.root })
  expect(lines.map(({ path, source, producer }) => [path, producer?.by ?? source])).toEqual([
    ['src/a.txt', 'before'],
    ['src/a.txt', 'before'],
    ['c.txt', 'Both'],
    ['src/a.txt', 'Ann'],
  ])
})

test('what nobody in the session changed is drift, between calls and during one', async () => {
  await using files = await TestFiles.make()
  const first: Files = { 'a.txt': file('one'), 'b.txt': file('bee') }
  const second: Files = { 'a.txt': file('one', 'two'), 'b.txt': file('bee') }
  const drifted: Files = { 'a.txt': file('one', 'two', 'person'), 'b.txt': file('bee') }
  const third: Files = { 'a.txt': file('one', 'two', 'person', 'four'), 'b.txt': file('bee') }
  let session = await files.call(start(), first, second, 'Ann')
  session = await files.call(session, drifted, third, 'Bob')
  expect(await authors(session, 'a.txt', files)).toEqual(['before', 'Ann', 'drift', 'Bob'])

  const [from, to] = [await files.tree(third), await files.tree({ ...third, 'b.txt': file('bee', 'buzz') })]
  const during = session.append(
    { kind: 'note', name: 'drift', data: { from, to, files: [{ path: 'b.txt', change: 'modified' }] } },
    {
      kind: 'tool-result',
      callId: 'x',
      tool: 'run',
      outcome: { kind: 'value', value: 0 },
      before: from,
      tree: to,
    },
  )
  expect(await authors(during, 'b.txt', files)).toEqual(['before', 'drift'])
})

test('a path that is not there is refused with the nearest', async () => {
  await using files = await TestFiles.make()
  const session = await files.call(start(), {}, { 'src/a.txt': file('one') })
  const options = { workspaces: files.root }
  await expect(blame(session, { path: 'a.txt' }, options)).rejects.toThrow(/Is it src\/a\.txt\?/)
  await expect(blame(session, { path: 'src' }, options)).rejects.toMatchObject({ code: 'path-kind' })
  await expect(blame(session, { path: 'src/a.txt', line: 2 }, options)).rejects.toThrow(/lines 1 to 1/)
  await expect(blame(start(), { path: 'a.txt' }, options)).rejects.toThrow(/has no files/)
  await expect(
    blame(session, { path: 'src/a.txt' }, { workspaces: '/no/such/folder' }),
  ).rejects.toMatchObject({
    code: 'unknown-blob',
  })
})

test('a statement has its author, model and prompt, and what the model had seen', async () => {
  const { store, branches } = await storeWithGraph()
  const [long, short] = branches as [Session, Session]
  const merged = (await long.merge(short)).append({ kind: 'assistant', text: 'Both.', by: 'Judge' })
  const at = merged.chunks.slice().findIndex(chunk => chunk.text === 'Rain.')
  const { producer, promptText, seen } = await blame(merged, { chunk: at }, { store })
  expect(producer).toMatchObject({ by: 'Poets/short', branch: 'short', model: 'm-1', kind: 'assistant' })
  expect(promptText).toMatch(/^You write poems/)
  expect(seen.map(({ kind, branch }) => `${kind} ${branch}`)).toEqual([
    'user ',
    'assistant short',
    'tool-result short',
  ])

  const last = await blame(merged, { chunk: -1 })
  expect(last.promptText).toBeUndefined()
  expect(last.seen).toHaveLength(7)
  const result = await blame(merged, { chunk: merged.chunks.at(2)?.id.slice(0, 8) as string }, { store })
  expect(result).toMatchObject({ producer: { tool: 'rhyme', model: 'm-1' }, seen: [{ kind: 'user' }] })
  expect(printBlamedChunk(result)).toMatch(/^chunk {3}2 tool-result/)
  await expect(blame(merged, { chunk: 'f'.repeat(64) })).rejects.toMatchObject({ code: 'unknown-chunk' })
  await expect(blame(merged, { chunk: 99 })).rejects.toThrow(/There is no chunk 99/)
})

test('a model that was given a summary has not seen what it replaced', async () => {
  const asked = Session.fromUserMessage('Hi').append({ kind: 'assistant', text: 'Hello.' }).user('Sum it up.')
  const replaced = asked.chunks.slice(0, 2).map(({ id }) => id)
  const session = renamed(asked, 'summed').append(
    { kind: 'compress', summary: 'They said hello.', replaced },
    { kind: 'assistant', text: 'Done.' },
  )
  const { seen } = await blame(session, { chunk: -1 })
  expect(seen.map(({ text }) => text)).toEqual(['They said hello.', 'Sum it up.'])
})
