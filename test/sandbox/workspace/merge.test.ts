import { execFileSync } from 'node:child_process'
import { expect, test } from 'vitest'
import { filesOf } from '../../../src/sandbox/workspace/compare.ts'
import { mergeTrees } from '../../../src/sandbox/workspace/merge.ts'
import { type Files, type Lab, lab } from './make.ts'

async function treeOf(place: Lab, files: Files): Promise<string> {
  return (await (await place.workspace(files)).snapshot()).tree
}

function contentOf(place: Lab, tree: string | undefined): Record<string, string> {
  if (tree === undefined) throw new Error('There is no tree.')
  return Object.fromEntries(
    [...filesOf(place.objects, tree)].map(({ path, entry }) => [
      path,
      `${entry.mode.toString(8)} ${place.objects.read(entry.id)}`,
    ]),
  )
}

const lines = (...changed: [number, string][]) =>
  Array.from({ length: 12 }, (_, i) => `${changed.find(([at]) => at === i)?.[1] ?? `line ${i}`}\n`).join('')

test('what one side changed is taken; text that both changed is merged by lines', async () => {
  using place = await lab()
  const base = await treeOf(place, { 'a/x': '1', 'b/y': '1', both: lines(), gone: 'x', mode: 'm\0' })
  const ours = await treeOf(place, {
    'a/x': 'ours',
    'b/y': '1',
    both: lines([1, 'ours']),
    mode: ['m\0', 0o600],
    new: 'o',
  })
  const theirs = await treeOf(place, {
    'a/x': '1',
    'b/y': 'theirs',
    both: lines([9, 'theirs']),
    gone: 'x',
    mode: 'other\0',
    'n/t': 't',
  })
  const merged = await mergeTrees(place.objects, base, ours, [theirs])
  expect(merged).toMatchObject({ conflicts: [], settled: [], keptGit: [] })
  expect(contentOf(place, merged.tree)).toEqual({
    'a/x': '644 ours',
    'b/y': '644 theirs',
    both: `644 ${lines([1, 'ours'], [9, 'theirs'])}`,
    mode: '600 other\0',
    new: '644 o',
    'n/t': '644 t',
  })
  expect(place.fsck()).toEqual([])
})

test('the result is the one of git merge-tree where git has an opinion', async () => {
  using place = await lab()
  const base = await treeOf(place, { 'a/x': lines(), 'b/y': lines(), c: '1' })
  const ours = await treeOf(place, {
    'a/x': lines([0, 'o']),
    'b/y': lines([5, 'o'], [6, 'o']),
    c: '1',
    d: 'new',
  })
  const theirs = await treeOf(place, { 'a/x': lines([11, 't']), 'b/y': lines([1, 't']), 'e/f': 'new' })
  const env = {
    ...process.env,
    GIT_AUTHOR_NAME: 'a',
    GIT_AUTHOR_EMAIL: 'a@b',
    GIT_COMMITTER_NAME: 'a',
    GIT_COMMITTER_EMAIL: 'a@b',
  }
  const git = (...args: string[]) =>
    execFileSync('git', ['--git-dir', place.objects.path, ...args], { encoding: 'utf8', env }).trim()
  const root = git('commit-tree', base, '-m', 'base')
  const [one, two] = [ours, theirs].map(tree => git('commit-tree', tree, '-p', root, '-m', 'side'))
  const { tree } = await mergeTrees(place.objects, base, ours, [theirs])
  expect(tree).toBe(git('merge-tree', '--write-tree', one as string, two as string))
})

const conflicting = async (place: Lab) => ({
  base: await treeOf(place, {
    text: lines(),
    bin: Buffer.from([0, 1]),
    del: 'x',
    'dir/f': 'x',
    l: '-> a',
    m: 'm',
  }),
  ours: await treeOf(place, {
    text: lines([3, 'ours']),
    bin: Buffer.from([0, 2]),
    add: 'ours\n',
    dir: 'a file',
    l: '-> b',
    m: ['m', 0o600],
  }),
  theirs: await treeOf(place, {
    text: lines([3, 'theirs']),
    bin: Buffer.from([0, 3]),
    del: 'changed',
    add: 'theirs\n',
    'dir/f': 'changed',
    l: '-> c',
    m: ['m', 0o640],
  }),
})

test('conflicts are data, each with its kind and the ids of its sides, and no tree is made', async () => {
  using place = await lab()
  const { base, ours, theirs } = await conflicting(place)
  const merged = await mergeTrees(place.objects, base, ours, [theirs])
  expect(merged.tree).toBeUndefined()
  expect(merged.settled).toEqual([])
  expect(Object.fromEntries(merged.conflicts.map(({ path, kind }) => [path, kind]))).toEqual({
    text: 'content',
    bin: 'binary',
    del: 'modify-delete',
    add: 'add-add',
    dir: 'type',
    l: 'link',
    m: 'mode',
  })
  const text = merged.conflicts.find(({ path }) => path === 'text')
  expect(place.objects.read(text?.base as string).toString()).toBe(lines())
  expect(place.objects.read(text?.ours as string).toString()).toBe(lines([3, 'ours']))
  expect(place.objects.read(text?.theirs as string).toString()).toBe(lines([3, 'theirs']))
  const marked = '<<<<<<< ours\nours\n=======\ntheirs\n>>>>>>> theirs'
  expect(place.objects.read(text?.marked as string).toString()).toBe(lines([3, marked]))
  expect(merged.conflicts.find(({ path }) => path === 'del')?.ours).toBeUndefined()
  expect(merged.conflicts.find(({ path }) => path === 'add')?.base).toBeUndefined()
})

test('ours, theirs and markers settle every conflict, and say how', async () => {
  using place = await lab()
  const { base, ours, theirs } = await conflicting(place)
  const byOurs = await mergeTrees(place.objects, base, ours, [theirs], { settle: 'ours' })
  expect(byOurs.tree).toBe(ours)
  expect(byOurs.conflicts).toEqual([])
  expect(byOurs.settled).toHaveLength(7)
  expect(byOurs.settled.every(({ settled }) => settled === 'ours')).toBe(true)
  const byTheirs = await mergeTrees(place.objects, base, ours, [theirs], { settle: 'theirs' })
  expect(byTheirs.tree).toBe(theirs)
  const labels = { ours: 'main', theirs: 'feature' }
  const marked = await mergeTrees(place.objects, base, ours, [theirs], { settle: 'markers', labels })
  const content = contentOf(place, marked.tree)
  expect(content.text).toContain('<<<<<<< main\nours\n=======\ntheirs\n>>>>>>> feature\n')
  expect(content.add).toContain('<<<<<<< main\nours\n=======\ntheirs\n>>>>>>> feature\n')
  expect(content.bin).toBe('644 \x00\x02')
  expect(content.del).toBe('644 changed')
  expect(Object.fromEntries(marked.settled.map(({ path, settled }) => [path, settled]))).toEqual({
    text: 'markers',
    add: 'markers',
    bin: 'ours',
    del: 'theirs',
    dir: 'ours',
    l: 'ours',
    m: 'ours',
  })
})

test('a function settles each as it likes, and may leave one open', async () => {
  using place = await lab()
  const { base, ours, theirs } = await conflicting(place)
  const asked: string[] = []
  const merged = await mergeTrees(place.objects, base, ours, [theirs], {
    settle: async conflict => {
      asked.push(conflict.path)
      if (conflict.path === 'text') {
        return { content: `${place.objects.read(conflict.ours as string)}and theirs\n` }
      }
      if (conflict.path === 'bin') return { content: Buffer.from([7]) }
      return conflict.path === 'del' ? 'delete' : 'theirs'
    },
  })
  expect(asked.sort()).toEqual(['add', 'bin', 'del', 'dir', 'l', 'm', 'text'])
  const content = contentOf(place, merged.tree)
  expect(content).toMatchObject({
    text: `644 ${lines([3, 'ours'])}and theirs\n`,
    bin: '644 \x07',
    'dir/f': '644 changed',
    m: '640 m',
  })
  expect(content).not.toHaveProperty('del')
  const open = await mergeTrees(place.objects, base, ours, [theirs], {
    settle: ({ path }) => (path === 'bin' ? 'refuse' : 'ours'),
  })
  expect(open.tree).toBeUndefined()
  expect(open.conflicts.map(({ path }) => path)).toEqual(['bin'])
  expect(open.settled).toHaveLength(6)
})

test('several branches at once; a conflict names the one it came from', async () => {
  using place = await lab()
  const base = await treeOf(place, { text: lines(), a: '1' })
  const ours = await treeOf(place, { text: lines([0, 'ours']), a: '1' })
  const others = [
    await treeOf(place, { text: lines([5, 'first']), a: '1', first: '1' }),
    await treeOf(place, { text: lines([11, 'second']), a: '1', second: '2' }),
    await treeOf(place, { text: lines([5, 'third']), a: '3' }),
  ]
  const clean = await mergeTrees(place.objects, base, ours, others.slice(0, 2))
  expect(contentOf(place, clean.tree)).toEqual({
    text: `644 ${lines([0, 'ours'], [5, 'first'], [11, 'second'])}`,
    a: '644 1',
    first: '644 1',
    second: '644 2',
  })
  const { conflicts } = await mergeTrees(place.objects, base, ours, others)
  expect(conflicts).toMatchObject([{ path: 'text', kind: 'content', branch: 2 }])
})

test('an inner repository is not merged: ours stays, and that is said', async () => {
  using place = await lab()
  const base = await treeOf(place, { '.git/HEAD': 'base', a: '1', 'lib/.git/HEAD': 'base', 'lib/x': '1' })
  const ours = await treeOf(place, {
    '.git/HEAD': 'ours',
    a: 'ours',
    'lib/.git/HEAD': 'base',
    'lib/x': 'ours',
  })
  const theirs = await treeOf(place, {
    '.git/HEAD': 'theirs',
    a: '1',
    b: '1',
    'lib/.git/HEAD': 'theirs',
    'lib/x': '1',
    'lib/y': '1',
  })
  const merged = await mergeTrees(place.objects, base, ours, [theirs])
  expect(merged.keptGit).toEqual(['.git', 'lib/.git'])
  expect(contentOf(place, merged.tree)).toEqual({
    '.git/HEAD': '644 ours',
    a: '644 ours',
    b: '644 1',
    'lib/.git/HEAD': '644 base',
    'lib/x': '644 ours',
    'lib/y': '644 1',
  })
})

test('a folder that one side removed goes, but for what the other side changed or added in it', async () => {
  using place = await lab()
  const base = await treeOf(place, { 'd/a': '1', 'd/b': '2', keep: 'k' })
  const ours = await treeOf(place, { keep: 'changed' })
  const same = await treeOf(place, { 'd/a': '1', 'd/b': '2', keep: 'k', x: 'x' })
  expect(contentOf(place, (await mergeTrees(place.objects, base, ours, [same])).tree)).toEqual({
    keep: '644 changed',
    x: '644 x',
  })
  const added = await treeOf(place, { 'd/a': '1', 'd/b': '2', 'd/c': '3', keep: 'k' })
  expect(contentOf(place, (await mergeTrees(place.objects, base, ours, [added])).tree)).toEqual({
    keep: '644 changed',
    'd/c': '644 3',
  })
  const changed = await treeOf(place, { 'd/a': 'other', 'd/b': '2', keep: 'k' })
  const { conflicts } = await mergeTrees(place.objects, base, ours, [changed])
  expect(conflicts).toMatchObject([{ path: 'd/a', kind: 'modify-delete', ours: undefined }])
})

test('a file that became a folder on both sides is merged as a folder; without a base everything is added', async () => {
  using place = await lab()
  const base = await treeOf(place, { x: 'file' })
  const ours = await treeOf(place, { 'x/a': '1' })
  const theirs = await treeOf(place, { 'x/b': '2' })
  expect(contentOf(place, (await mergeTrees(place.objects, base, ours, [theirs])).tree)).toEqual({
    'x/a': '644 1',
    'x/b': '644 2',
  })
  const unrelated = await mergeTrees(place.objects, undefined, ours, [theirs])
  expect(contentOf(place, unrelated.tree)).toEqual({ 'x/a': '644 1', 'x/b': '644 2' })
})

test('text that both sides changed is merged without git', async () => {
  using place = await lab()
  const base = await treeOf(place, { text: lines() })
  const ours = await treeOf(place, { text: lines([0, 'o']) })
  const theirs = await treeOf(place, { text: lines([9, 't']) })
  const path = process.env.PATH
  process.env.PATH = '/nowhere'
  try {
    const { tree } = await mergeTrees(place.objects, base, ours, [theirs])
    expect(contentOf(place, tree)).toEqual({ text: `644 ${lines([0, 'o'], [9, 't'])}` })
  } finally {
    process.env.PATH = path
  }
})

test('folders that only one side changed are not opened', async () => {
  using place = await lab()
  const files = Object.fromEntries(Array.from({ length: 30 }, (_, i) => [`d${i}/f`, `${i}`]))
  const base = await treeOf(place, files)
  const ours = await treeOf(place, { ...files, 'd1/f': 'ours' })
  const theirs = await treeOf(place, { ...files, 'd2/f': 'theirs' })
  let read = 0
  const original = place.objects.read.bind(place.objects)
  place.objects.read = (id, kind) => {
    read++
    return original(id, kind)
  }
  await mergeTrees(place.objects, base, ours, [theirs])
  expect(read).toBe(3)
})

test('what is to be kept stays ours, also in a folder that only they changed, and is named', async () => {
  using place = await lab()
  const files = { 'a/code/x': '1', 'a/text': '1', 'b/y': '1' }
  const base = await treeOf(place, files)
  const theirs = await treeOf(place, {
    'a/code/x': 'theirs',
    'a/code/new': 'theirs',
    'a/text': '2',
    'b/y': '2',
  })
  const merged = await mergeTrees(place.objects, base, base, [theirs], { keep: ['a/code'] })
  expect(merged.kept).toEqual(['a/code'])
  expect(contentOf(place, merged.tree)).toEqual({ 'a/code/x': '644 1', 'a/text': '644 2', 'b/y': '644 2' })
  const without = await treeOf(place, { 'b/y': '1' })
  const removed = await mergeTrees(place.objects, base, base, [without], { keep: ['a/code'] })
  expect(contentOf(place, removed.tree)).toEqual({ 'a/code/x': '644 1', 'b/y': '644 1' })
})
