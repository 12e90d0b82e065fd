import {
  chmodSync,
  existsSync,
  mkdirSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { ObjectBatch } from '../../../src/sandbox/workspace/batch.ts'
import { writeTree } from '../../../src/sandbox/workspace/tree.ts'
import { lab, listing, write } from './make.ts'

test('a restore touches only what differs, and can be undone', async () => {
  using place = await lab()
  const workspace = await place.workspace({
    a: '1',
    'b/c': '2',
    'b/d': ['3', 0o600],
    'e/': '',
    same: 'same',
    l: '-> a',
  })
  const { tree } = await workspace.snapshot()
  const before = listing(workspace.folder)
  const { ino } = statSync(join(workspace.folder, 'same'))
  write(workspace.folder, { a: 'changed', 'b/new': 'x', 'x/y/z': 'x' })
  chmodSync(join(workspace.folder, 'b/d'), 0o644)
  rmSync(join(workspace.folder, 'e'), { recursive: true })
  rmSync(join(workspace.folder, 'l'))
  write(workspace.folder, { l: 'a file now' })
  const after = listing(workspace.folder)

  const report = await workspace.restore(tree)
  expect(report).toMatchObject({ tree, written: 3, removed: 2, notRestored: [] })
  expect(listing(workspace.folder)).toEqual(before)
  expect(statSync(join(workspace.folder, 'same')).ino).toBe(ino)
  expect(workspace.tree).toBe(tree)
  await workspace.restore(report.before)
  expect(listing(workspace.folder)).toEqual(after)
  expect(await workspace.restore(report.before)).toMatchObject({ written: 0, removed: 0 })
})

test('a folder where a file was, and a file where a folder was', async () => {
  using place = await lab()
  const workspace = await place.workspace({ a: 'file', 'b/c/d': 'deep' })
  const { tree } = await workspace.snapshot()
  const before = listing(workspace.folder)
  rmSync(join(workspace.folder, 'a'))
  rmSync(join(workspace.folder, 'b'), { recursive: true })
  write(workspace.folder, { 'a/x/y': '1', b: 'file' })
  const other = await workspace.snapshot()
  await workspace.restore(tree)
  expect(listing(workspace.folder)).toEqual(before)
  expect(await workspace.restore(other.tree)).toMatchObject({ tree: other.tree, notRestored: [] })
})

test('a linked folder in the way is replaced, and nothing behind it is touched', async () => {
  using place = await lab()
  const outside = join(place.root, 'outside')
  write(outside, { 'victim.txt': 'safe', 'sub/victim.txt': 'safe' })
  const untouched = listing(outside)
  const workspace = await place.workspace({
    'd/victim.txt': 'mine',
    'd/sub/victim.txt': 'mine',
    'd/sub/only': 'x',
  })
  const { tree } = await workspace.snapshot()
  const before = listing(workspace.folder)
  rmSync(join(workspace.folder, 'd'), { recursive: true })
  symlinkSync(outside, join(workspace.folder, 'd'))
  await workspace.restore(tree)
  expect(listing(workspace.folder)).toEqual(before)
  expect(listing(outside)).toEqual(untouched)

  // The same one level down, and as something to be removed.
  rmSync(join(workspace.folder, 'd/sub'), { recursive: true })
  symlinkSync(outside, join(workspace.folder, 'd/sub'))
  symlinkSync(outside, join(workspace.folder, 'extra'))
  await workspace.restore(tree)
  expect(listing(workspace.folder)).toEqual(before)
  expect(listing(outside)).toEqual(untouched)
})

test('a folder that becomes a link after it was looked at is not followed', async () => {
  using place = await lab()
  const outside = join(place.root, 'outside')
  write(outside, { a: 'safe' })
  const workspace = await place.workspace({ 'd/a': '1', 'd/b': '2' })
  const { tree } = await workspace.snapshot()
  write(workspace.folder, { 'd/a': 'changed' })
  const read = place.objects.read.bind(place.objects)
  let swapped = false
  // The restore reads the tree of `d` once it holds that folder open: the moment for an attack.
  place.objects.read = (id, kind) => {
    const found = read(id, kind)
    if (!swapped && kind === undefined) {
      swapped = true
      renameSync(join(workspace.folder, 'd'), join(place.root, 'moved'))
      symlinkSync(outside, join(workspace.folder, 'd'))
    }
    return found
  }
  await workspace.restore(tree)
  expect(swapped).toBe(true)
  expect(listing(outside)).toEqual({ a: '644 safe' })
  expect(listing(join(place.root, 'moved')).a).toBe('644 1')
})

test('a tree that names a path outside is refused before anything is written', async () => {
  using place = await lab()
  const workspace = await place.workspace({ a: '1' })
  for (const name of ['..', '.', 'a/b', '../x']) {
    const batch = new ObjectBatch(place.objects)
    const blob = batch.put('blob', Buffer.from('evil'))
    const tree = writeTree([[name, { kind: 'file', id: blob, mode: 0o644 }]], batch)
    batch.finish()
    await expect(workspace.restore(tree)).rejects.toMatchObject({ code: 'store-corrupt' })
  }
  expect(listing(workspace.folder)).toEqual({ a: '644 1' })
  expect(existsSync(join(place.root, 'x'))).toBe(false)
})

test('read-only folders are written into and are read-only again', async () => {
  using place = await lab()
  const workspace = await place.workspace({ 'd/e/a': '1', 'd/b': '2' })
  chmodSync(join(workspace.folder, 'd/e'), 0o555)
  chmodSync(join(workspace.folder, 'd'), 0o555)
  const { tree } = await workspace.snapshot()
  const before = listing(workspace.folder)
  chmodSync(join(workspace.folder, 'd'), 0o755)
  chmodSync(join(workspace.folder, 'd/e'), 0o755)
  write(workspace.folder, { 'd/e/a': 'changed', 'd/e/f': 'new' })
  chmodSync(join(workspace.folder, 'd/e'), 0o500)
  chmodSync(join(workspace.folder, 'd'), 0o511)
  expect(await workspace.restore(tree)).toMatchObject({ tree, notRestored: [] })
  expect(listing(workspace.folder)).toEqual(before)
})

test('what was never kept is left where it is unless its place is needed, and always named', async () => {
  using place = await lab()
  const workspace = await place.workspace({ a: '1', data: 'small' }, { limits: { file: 10 } })
  const { tree } = await workspace.snapshot()
  write(workspace.folder, { 'made/later.bin': 'x'.repeat(11), 'made/small': 'x', data: 'd'.repeat(20) })
  const later = await workspace.snapshot()
  const report = await workspace.restore(tree)
  expect(report.notRestored).toEqual([{ path: 'made/later.bin', why: 'left', reason: 'too-big' }])
  expect(report.tree).not.toBe(tree)
  expect(listing(workspace.folder)).toMatchObject({ data: '644 small', 'made/later.bin': expect.anything() })
  expect(listing(workspace.folder)).not.toHaveProperty(['made/small'])
  const back = await workspace.restore(later.tree)
  expect(back.notRestored).toEqual([{ path: 'data', why: 'not-kept', reason: 'too-big' }])
})

test('a blob that the store has lost is reported, and the rest is restored', async () => {
  using place = await lab()
  const workspace = await place.workspace({ a: '1', b: '2', c: '3' })
  const { tree } = await workspace.snapshot()
  const lost = place.git('rev-parse', `${tree}:b`).trim()
  rmSync(place.objects.loose.pathOf(lost))
  // What was just written is still in memory.
  place.objects.close()
  const elsewhere = await place.workspace()
  const report = await elsewhere.restore(tree)
  expect(report.notRestored).toEqual([{ path: 'b', why: 'failed', message: expect.stringContaining(lost) }])
  expect(listing(elsewhere.folder)).toEqual({ a: '644 1', c: '644 3' })
})

test('a restore of a tree that is not there changes nothing', async () => {
  using place = await lab()
  const workspace = await place.workspace({ a: '1' })
  await expect(workspace.restore('1'.repeat(64))).rejects.toMatchObject({ code: 'unknown-blob' })
  await expect(workspace.restore('main')).rejects.toMatchObject({ code: 'invalid-argument' })
  expect(listing(workspace.folder)).toEqual({ a: '644 1' })
})

test('an aborted restore leaves whole files, and the next one finishes it', async () => {
  using place = await lab()
  const workspace = await place.workspace({ a: '1' })
  const { tree } = await workspace.snapshot()
  write(workspace.folder, { a: '2' })
  const signal = AbortSignal.abort()
  await expect(workspace.restore(tree, { signal })).rejects.toMatchObject({ code: 'cancelled' })
  expect(listing(workspace.folder)).toEqual({ a: '644 2' })
  expect(await workspace.restore(tree)).toMatchObject({ tree, written: 1 })
})

test('many files at once, into a folder that is not empty', async () => {
  using place = await lab()
  const files = Object.fromEntries(Array.from({ length: 700 }, (_, i) => [`d${i % 9}/f${i}`, `${i}`]))
  const workspace = await place.workspace(files)
  const { tree } = await workspace.snapshot()
  const elsewhere = await place.workspace({ 'd1/extra': 'x', d2: 'in the way', 'd3/f3': '3' })
  mkdirSync(join(elsewhere.folder, 'd4/f4'), { recursive: true })
  writeFileSync(join(elsewhere.folder, 'd4/f4/x'), 'x')
  expect(await elsewhere.restore(tree)).toMatchObject({ tree, written: 699, notRestored: [] })
  expect(listing(elsewhere.folder)).toEqual(listing(workspace.folder))
})
