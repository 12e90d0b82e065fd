import { execFileSync } from 'node:child_process'
import {
  appendFileSync,
  chmodSync,
  linkSync,
  lstatSync,
  mkdirSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { blobAt, entryAt } from '../../../src/sandbox/workspace/compare.ts'
import { fileNode, isSame } from '../../../src/sandbox/workspace/file-index.ts'
import { Workspace } from '../../../src/sandbox/workspace/workspace.ts'
import { lab, listing, write } from './make.ts'

const hostile = {
  '.gitignore': '*.log\nbuild/\n',
  'ignored.log': 'kept all the same\n',
  'build/out.bin': Buffer.from([0, 1, 2, 255, 254, 0]),
  'empty/': '',
  'deep/empty/er/': '',
  'secret.key': ['private', 0o600],
  'run.sh': ['#!/bin/sh\n', 0o755],
  'odd.sh': ['#!/bin/sh\n', 0o711],
  'read-only.txt': ['stays', 0o444],
  'set.txt': ['x', 0o4755],
  crlf: 'one\r\ntwo\r\n',
  'new\nline.txt': 'newline in the name\n',
  'tab\there " quote': 'x',
  ' leading and trailing ': 'x',
  'ünï/😀.txt': 'x',
  '\uFFFD': 'a name that really has this character',
  '.git/HEAD': 'ref: refs/heads/main\n',
  '.git/config': '[core]\n',
  '.git/objects/': '',
  'vendor/lib/.git/HEAD': 'ref: refs/heads/main\n',
  'vendor/lib/a.c': 'int a;\n',
  'odd/.GIT/x': 'x',
  'odd/git~1': 'x',
  'odd/.git ': 'x',
  'odd/.git.': 'x',
  'odd/.git::$INDEX_ALLOCATION': 'x',
  'odd/.g\u200cit/x': 'x',
  'odd/back\\slash': 'x',
  'odd/.git\\x': 'x',
  'odd/.gitmodules': '[submodule "x"]\n\turl = -u./payload\n',
  'odd/.gitattributes': `a ${'b'.repeat(5000)}\n`,
  'odd/.github/x': 'x',
  'odd/gitmod~1': 'x',
  'odd/%': 'x',
  'odd/%openrath': 'x',
  'odd/%%openrath': 'x',
  'odd/openrath': 'x',
  'odd/__proto__': ['x', 0o640],
  'odd/constructor': ['x', 0o640],
  'odd/12': ['x', 0o640],
  'odd/links/.gitmodules': '-> elsewhere',
  'odd/links/.gitignore': '-> elsewhere',
  'odd/links/.mailmap': '-> elsewhere',
  link: '-> crlf',
  dangling: '-> /nowhere/at all',
  folderLink: '-> build',
  // Sorts differently as a folder and as a file, and by characters and by bytes.
  'sort/a': 'x',
  'sort/a.b': 'x',
  'sort/a0/x': 'x',
  'sort/\u{10000}': 'x',
  'sort/\uFFFF': 'x',
} as const

test('everything comes back: ignored, empty, modes, links, inner repositories, hostile names; and git finds no fault', async () => {
  using place = await lab()
  const workspace = await place.workspace(hostile)
  chmodSync(join(workspace.folder, 'build'), 0o700)
  chmodSync(join(workspace.folder, 'empty'), 0o2775)
  writeFileSync(
    Buffer.concat([Buffer.from(`${workspace.folder}/not`), Buffer.from([0xff, 0xfe, 0x41])]),
    'no text',
  )
  mkdirSync(Buffer.concat([Buffer.from(`${workspace.folder}/dir`), Buffer.from([0xe9])]))
  writeFileSync(
    Buffer.concat([Buffer.from(`${workspace.folder}/dir`), Buffer.from([0xe9]), Buffer.from('/inner')]),
    'inside',
  )
  symlinkSync(Buffer.from([0xc3, 0x28]), join(workspace.folder, 'linkToBytes'))
  const { tree, notKept } = await workspace.snapshot()
  expect(notKept).toEqual([])
  expect(place.fsck()).toEqual([])

  const elsewhere = await place.workspace()
  const report = await elsewhere.restore(tree)
  expect(report).toMatchObject({ tree, notRestored: [], removed: 0 })
  expect(listing(elsewhere.folder)).toEqual(listing(workspace.folder))
  // Read again from nothing, in another store's eyes: the tree depends on the files and on nothing else.
  const fresh = await Workspace.open(elsewhere.folder, place.objects, { keep: false })
  expect((await fresh.snapshot()).tree).toBe(tree)
})

test('git shows plain names as they are, and the refused ones behind a percent sign', async () => {
  using place = await lab()
  const workspace = await place.workspace({
    '.git/HEAD': 'x',
    '.github/a': 'x',
    '.gitignore': 'x',
    '%a': 'x',
    'src/b': 'x',
  })
  const { tree } = await workspace.snapshot()
  expect(place.git('ls-tree', '-r', '--name-only', tree).trim().split('\n')).toEqual([
    '%%a',
    '%.git/HEAD',
    '.github/a',
    '.gitignore',
    'src/b',
  ])
  expect(blobAt(place.objects, tree, '.git/HEAD')?.toString()).toBe('x')
  expect(blobAt(place.objects, tree, '.git')).toBeUndefined()
  expect(entryAt(place.objects, tree, 'src')).toMatchObject({ kind: 'folder' })
  expect(blobAt(place.objects, tree, 'src/none')).toBeUndefined()
})

test('the folder .openrath at the top is no part of it, one deeper is', async () => {
  using place = await lab()
  const workspace = await place.workspace({ 'a/.openrath/x': 'x' })
  const { tree } = await workspace.snapshot()
  write(workspace.folder, { '.openrath/objects/y': 'y' })
  expect((await workspace.snapshot()).tree).toBe(tree)
  expect((await workspace.snapshot(['.openrath/objects/y'])).tree).toBe(tree)
  expect(blobAt(place.objects, tree, 'a/.openrath/x')?.toString()).toBe('x')
  const { removed } = await workspace.restore(tree)
  expect(removed).toBe(0)
  expect(listing(workspace.folder)['.openrath/objects/y']).toBe('644 y')
})

test('the tree follows content, mode, name, and nothing else', async () => {
  using place = await lab()
  const workspace = await place.workspace({ a: 'one', 'b/c': 'two' })
  const path = join(workspace.folder, 'a')
  const { tree } = await workspace.snapshot()
  utimesSync(path, 1, 1)
  expect((await workspace.snapshot()).tree).toBe(tree)
  chmodSync(path, 0o640)
  const chmodded = await workspace.snapshot()
  expect(chmodded.tree).not.toBe(tree)
  chmodSync(path, 0o644)
  expect((await workspace.snapshot()).tree).toBe(tree)
  mkdirSync(join(workspace.folder, 'new'))
  const withFolder = await workspace.snapshot()
  expect(withFolder.tree).not.toBe(tree)
  rmSync(join(workspace.folder, 'new'), { recursive: true })
  expect((await workspace.snapshot()).tree).toBe(tree)
})

test('a change right after a snapshot that leaves size and time as they were is seen', async () => {
  using place = await lab()
  const workspace = await place.workspace({ a: 'one' })
  const path = join(workspace.folder, 'a')
  const { tree } = await workspace.snapshot()
  for (const content of ['two', 'six', 'ten', 'one']) {
    const { mtime } = statSync(path)
    writeFileSync(path, content)
    utimesSync(path, mtime, mtime)
    expect(blobAt(place.objects, (await workspace.snapshot()).tree, 'a')?.toString()).toBe(content)
  }
  expect(workspace.tree).toBe(tree)
})

test('a file that was changed just before it was read is read again, one that was changed long before is not', async () => {
  using place = await lab()
  const { folder } = await place.workspace({ a: 'one' })
  const found = lstatSync(join(folder, 'a'))
  const changedAt = found.ctimeMs
  expect(isSame(fileNode(found, 'id', changedAt), found)).toBe(false)
  expect(isSame(fileNode(found, 'id', changedAt + 15), found)).toBe(false)
  expect(isSame(fileNode(found, 'id', changedAt + 100), found)).toBe(true)
  expect(isSame(fileNode(found), found)).toBe(false)
})

test('a file that is read again, and is what it was, leaves the store alone', async () => {
  using place = await lab()
  const workspace = await place.workspace({ 'a/b': 'one' })
  const { tree } = await workspace.snapshot()
  const kept = [tree, entryAt(place.objects, tree, 'a')?.id, entryAt(place.objects, tree, 'a/b')?.id]
  const paths = kept.map(id => place.objects.loose.pathOf(id as string))
  for (const path of paths) utimesSync(path, 1, 1)
  expect((await workspace.snapshot(['a/b'])).tree).toBe(tree)
  expect((await workspace.snapshot()).tree).toBe(tree)
  expect(paths.map(path => statSync(path).mtimeMs)).toEqual([1000, 1000, 1000])
})

test('whichever file changes, its tree is the one that is written from nothing', async () => {
  using place = await lab()
  const workspace = await place.workspace(hostile)
  await workspace.snapshot()
  const { folder } = workspace
  const paths = Object.keys(hostile).filter(
    path => !path.endsWith('/') && lstatSync(join(folder, path)).isFile(),
  )
  expect(paths.length).toBeGreaterThan(30)
  for (const content of ['once', 'again']) {
    for (const path of paths) {
      const mode = statSync(join(folder, path)).mode & 0o7777
      rmSync(join(folder, path))
      write(folder, { [path]: [content, mode] })
      const { tree } = await workspace.snapshot([path])
      if (content === 'once') continue
      const other = await Workspace.open(folder, place.objects, { keep: false })
      expect((await other.snapshot()).tree, path).toBe(tree)
    }
  }
  expect(place.fsck()).toEqual([])
})

test('known paths give the tree that looking everywhere gives', async () => {
  using place = await lab()
  const workspace = await place.workspace({ 'a/b/c.txt': '1', 'a/d.txt': '2', 'e/': '', link: '-> a' })
  await workspace.snapshot()
  const everywhere = async () => {
    const other = await Workspace.open(workspace.folder, place.objects, { keep: false })
    return (await other.snapshot()).tree
  }
  const { folder } = workspace
  write(folder, { 'a/b/c.txt': 'changed' })
  expect((await workspace.snapshot(['a/b/c.txt'])).tree).toBe(await everywhere())
  write(folder, { 'new/deep/file.txt': 'made with its folders' })
  expect((await workspace.snapshot([join(folder, 'new/deep/file.txt')])).tree).toBe(await everywhere())
  rmSync(join(folder, 'a/b'), { recursive: true })
  expect((await workspace.snapshot(['./a/b/c.txt'])).tree).toBe(await everywhere())
  rmSync(join(folder, 'a/d.txt'))
  mkdirSync(join(folder, 'a/d.txt'))
  write(folder, { 'a/d.txt/inner': 'a folder where a file was' })
  expect((await workspace.snapshot(['a/d.txt/inner'])).tree).toBe(await everywhere())
  rmSync(join(folder, 'new'), { recursive: true })
  write(folder, { new: 'a file where a folder was' })
  expect((await workspace.snapshot(['new/deep/file.txt'])).tree).toBe(await everywhere())
  write(folder, { 'a/through.txt': 'written through the link' })
  expect((await workspace.snapshot(['link/through.txt'])).tree).toBe(await everywhere())
  expect((await workspace.snapshot(['.'])).tree).toBe(await everywhere())
  await expect(workspace.snapshot(['../outside'])).rejects.toMatchObject({ code: 'path-outside' })
  await expect(workspace.snapshot(['/etc/passwd'])).rejects.toMatchObject({ code: 'path-outside' })
})

test('a workspace that holds a tree takes its first snapshot by paths, and one more by everything', async () => {
  using place = await lab()
  const first = await place.workspace({ 'a/b': '1', 'c/d': ['2', 0o600], fifo: 'x' })
  const { tree } = await first.snapshot()
  write(first.folder, { 'a/b': 'changed' })
  const holding = await Workspace.open(first.folder, place.objects, { keep: false, holds: tree })
  expect(holding.tree).toBe(tree)
  const after = await holding.snapshot(['a/b'])
  expect(blobAt(place.objects, after.tree, 'a/b')?.toString()).toBe('changed')
  expect((await holding.snapshot()).tree).toBe(after.tree)
  expect((await first.snapshot()).tree).toBe(after.tree)
})

test('the next process knows the tree, and reads only what changed since', async () => {
  using place = await lab()
  const first = await place.workspace({ a: '1', 'b/c': '2' })
  const { tree } = await first.snapshot()
  // A second look once the clock has moved on: nothing is uncertain any more.
  utimesSync(join(first.folder, 'a'), 1, 1)
  await first.snapshot()
  await first.close()
  const second = await Workspace.open(first.folder, place.objects)
  expect(second.tree).toBe(tree)
  expect((await second.snapshot()).tree).toBe(tree)
  write(first.folder, { a: 'other' })
  expect((await second.snapshot()).tree).not.toBe(tree)
})

test('pipes, sockets and devices are recorded and not kept, and nobody waits for them', async () => {
  using place = await lab()
  const workspace = await place.workspace({ a: '1' })
  const { tree } = await workspace.snapshot()
  execFileSync('mkfifo', [join(workspace.folder, 'pipe')])
  const after = await workspace.snapshot()
  expect(after.notKept).toEqual([{ path: 'pipe', reason: 'fifo' }])
  expect(after.tree).not.toBe(tree)
  expect(place.fsck()).toEqual([])
  const elsewhere = await place.workspace()
  const { notRestored } = await elsewhere.restore(after.tree)
  expect(notRestored).toEqual([{ path: 'pipe', why: 'not-kept', reason: 'fifo' }])
})

test('what is too big is described, and a change of it changes the tree', async () => {
  using place = await lab()
  const limits = { file: 100, filesInHeavyFolder: 3 }
  const heavy = Object.fromEntries(Array.from({ length: 4 }, (_, i) => [`app/node_modules/m${i}/x.js`, 'x']))
  const workspace = await place.workspace(
    { small: 'x', big: 'b'.repeat(101), ...heavy, 'node_modules/one': 'x' },
    { limits },
  )
  const first = await workspace.snapshot()
  expect(first.notKept).toEqual([
    expect.objectContaining({ path: 'app/node_modules', reason: 'too-many', files: 4 }),
    expect.objectContaining({ path: 'big', reason: 'too-big', size: 101 }),
  ])
  expect(blobAt(place.objects, first.tree, 'node_modules/one')?.toString()).toBe('x')
  expect((await workspace.snapshot()).tree).toBe(first.tree)
  appendFileSync(join(workspace.folder, 'app/node_modules/m1/x.js'), 'y')
  const second = await workspace.snapshot()
  expect(second.tree).not.toBe(first.tree)
  appendFileSync(join(workspace.folder, 'app/node_modules/m1/x.js'), 'z')
  expect((await workspace.snapshot(['app/node_modules/m1/x.js'])).tree).not.toBe(second.tree)
  appendFileSync(join(workspace.folder, 'big'), 'b')
  expect((await workspace.snapshot(['big'])).notKept).toContainEqual(
    expect.objectContaining({ path: 'big', size: 102 }),
  )
  write(workspace.folder, { big: 'small now' })
  expect((await workspace.snapshot()).notKept).toHaveLength(1)
})

test('beyond the limit of all bytes the largest files are not kept; beyond that of all files it is refused', async () => {
  using place = await lab()
  const files = { a: 'x'.repeat(50), b: 'x'.repeat(60), 'c/d': 'x'.repeat(40) }
  const workspace = await place.workspace(files, { limits: { bytes: 100 } })
  const { tree, notKept } = await workspace.snapshot()
  expect(notKept).toMatchObject([{ path: 'b', reason: 'too-big', size: 60 }])
  expect((await workspace.snapshot()).tree).toBe(tree)
  const strict = await Workspace.open(workspace.folder, place.objects, { keep: false, limits: { files: 2 } })
  await expect(strict.snapshot()).rejects.toMatchObject({ code: 'workspace-too-big' })
  await expect(strict.snapshot()).rejects.toThrow(/3 files, and the limit is 2/)
})

test('folders nested deeper than the limit are recorded as such', async () => {
  using place = await lab()
  const workspace = await place.workspace({ 'a/b/c/d/e': 'x' }, { limits: { depth: 3 } })
  const { notKept, tree } = await workspace.snapshot()
  expect(notKept).toEqual([{ path: 'a/b/c', reason: 'too-deep' }])
  expect((await workspace.restore(tree)).notRestored).toEqual([])
  expect(listing(workspace.folder)['a/b/c/d/e']).toBe('644 x')
})

test('a hard link to a file outside is kept as a file', async () => {
  using place = await lab()
  const workspace = await place.workspace()
  write(place.root, { outside: 'x' })
  linkSync(join(place.root, 'outside'), join(workspace.folder, 'inside'))
  const { tree } = await workspace.snapshot()
  expect(blobAt(place.objects, tree, 'inside')?.toString()).toBe('x')
})

test('calls are queued: a snapshot asked for before a restore is of the files before it', async () => {
  using place = await lab()
  const workspace = await place.workspace({ a: '1' })
  const first = await workspace.snapshot()
  write(workspace.folder, { a: '2' })
  const [second, report, third] = await Promise.all([
    workspace.snapshot(),
    workspace.restore(first.tree),
    workspace.snapshot(),
  ])
  expect(second.tree).not.toBe(first.tree)
  expect(report.before).toBe(second.tree)
  expect(third.tree).toBe(first.tree)
})

test('an aborted snapshot keeps nothing, and the next one is whole', async () => {
  using place = await lab()
  const files = Object.fromEntries(Array.from({ length: 100 }, (_, i) => [`f${i}`, `${i}`]))
  const workspace = await place.workspace(files)
  const signal = AbortSignal.abort(new Error('enough'))
  await expect(workspace.snapshot(undefined, { signal })).rejects.toMatchObject({ code: 'cancelled' })
  expect(workspace.tree).toBeUndefined()
  expect(place.objects.packs()).toHaveLength(0)
  const { tree } = await workspace.snapshot()
  expect(place.git('ls-tree', '--name-only', tree).trim().split('\n')).toHaveLength(100)
})

test('a folder that is not there is named', async () => {
  using place = await lab()
  await expect(Workspace.open(join(place.root, 'none'), place.objects)).rejects.toMatchObject({
    code: 'path-missing',
  })
})
