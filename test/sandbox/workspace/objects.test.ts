import { execFile } from 'node:child_process'
import { readdirSync, statSync, truncateSync, utimesSync, writeFileSync } from 'node:fs'
import { chmod } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { ObjectBatch } from '../../../src/sandbox/workspace/batch.ts'
import { blobAt, filesOf } from '../../../src/sandbox/workspace/compare.ts'
import { emptyBlob, emptyTree, idOf } from '../../../src/sandbox/workspace/object.ts'
import { ObjectStore } from '../../../src/sandbox/workspace/objects.ts'
import { prune } from '../../../src/sandbox/workspace/prune.ts'
import { Workspace } from '../../../src/sandbox/workspace/workspace.ts'
import { lab, write } from './make.ts'

const many = (count: number) =>
  Object.fromEntries(
    Array.from({ length: count }, (_, i) => [`d${i % 7}/f${i}.txt`, `file ${i}\n`.repeat(i)]),
  )

test('git reads the store: a few files of their own, and a pack of many', async () => {
  using place = await lab()
  const workspace = await place.workspace({ 'a.txt': 'one\n' })
  const few = await workspace.snapshot()
  expect(place.git('cat-file', '-p', `${few.tree}:a.txt`)).toBe('one\n')
  expect(place.objects.packs()).toHaveLength(0)

  write(workspace.folder, many(300))
  const { tree } = await workspace.snapshot()
  expect(place.objects.packs()).toHaveLength(1)
  expect(place.git('ls-tree', '-r', '--name-only', tree).trim().split('\n')).toHaveLength(301)
  expect(place.git('cat-file', '-p', `${tree}:d1/f8.txt`)).toBe('file 8\n'.repeat(8))
  expect(place.git('diff-tree', '-r', '--name-status', few.tree, tree)).toContain('A\td0/f0.txt')
  expect(place.fsck()).toEqual([])
  expect(place.git('rev-parse', '--show-object-format').trim()).toBe('sha256')
})

test('what is empty has the ids that git gives it', async () => {
  using place = await lab()
  expect(idOf('tree', Buffer.alloc(0))).toBe(emptyTree)
  expect(idOf('blob', Buffer.alloc(0))).toBe(emptyBlob)
  expect(place.objects.read(emptyTree, 'tree')).toHaveLength(0)
})

test('a file larger than a block of zlib comes back whole, from a file of its own and from a pack', async () => {
  using place = await lab()
  for (const size of [0, 1, 65_534, 65_535, 65_536, 131_070, 200_003]) {
    const content = Buffer.from(Array.from({ length: size }, (_, i) => (i * 31) % 251))
    const batch = new ObjectBatch(place.objects)
    const id = batch.put('blob', content)
    // Enough of them that they go into a pack.
    for (let i = 0; i < 40; i++) batch.put('blob', Buffer.from(`${size} ${i}`))
    batch.finish()
    expect(place.objects.read(id).equals(content)).toBe(true)
    const alone = Buffer.concat([content, Buffer.from('alone')])
    expect(place.objects.read(place.objects.put('blob', alone)).equals(alone)).toBe(true)
  }
  expect(place.fsck()).toEqual([])
})

test('nothing of a batch that is discarded is there', async () => {
  using place = await lab()
  const batch = new ObjectBatch(place.objects)
  const ids = Array.from({ length: 100 }, (_, i) => batch.put('blob', Buffer.from(`${i}`)))
  batch.discard()
  expect(ids.some(id => place.objects.has(id))).toBe(false)
  expect(readdirSync(join(place.objects.path, 'objects', 'pack'))).toEqual([])
})

test('a read that does not fit its digest names the object and the file', async () => {
  using place = await lab()
  const id = place.objects.put('blob', Buffer.from('hello'))
  const other = place.objects.put('blob', Buffer.from('other'))
  const path = place.objects.loose.pathOf(id)
  await chmod(path, 0o644)
  writeFileSync(path, (await import('node:fs')).readFileSync(place.objects.loose.pathOf(other)))
  expect(() => place.objects.read(id)).toThrow(expect.objectContaining({ code: 'store-corrupt' }))
  expect(() => place.objects.read(id)).toThrow(new RegExp(`${id}.*${other}`))
  writeFileSync(path, 'no zlib')
  expect(() => place.objects.read(id)).toThrow(expect.objectContaining({ code: 'store-corrupt' }))
  expect(() => place.objects.read('0'.repeat(64))).toThrow(expect.objectContaining({ code: 'unknown-blob' }))
  expect(() => place.objects.read('abc')).toThrow(/64 hex digits/)
})

test('an object that a power cut left empty is written again', async () => {
  using place = await lab()
  const id = place.objects.put('blob', Buffer.from('hello'))
  await chmod(place.objects.loose.pathOf(id), 0o644)
  truncateSync(place.objects.loose.pathOf(id))
  expect(place.objects.put('blob', Buffer.from('hello'))).toBe(id)
  expect(place.objects.read(id).toString()).toBe('hello')
})

test('a folder that holds another repository is refused', async () => {
  using place = await lab()
  write(place.root, { 'foreign/config': '[core]\n\tbare = true\n' })
  await expect(ObjectStore.open(join(place.root, 'foreign'))).rejects.toMatchObject({ code: 'store-foreign' })
})

test('two processes write the same and other objects at once, and every one of them can be read', async () => {
  using place = await lab()
  const code = (seed: number) => `
    import { ObjectStore } from ${JSON.stringify(join(import.meta.dirname, '../../../src/sandbox/workspace/objects.ts'))}
    import { ObjectBatch } from ${JSON.stringify(join(import.meta.dirname, '../../../src/sandbox/workspace/batch.ts'))}
    const objects = await ObjectStore.open(${JSON.stringify(place.objects.path)})
    const ids = []
    for (let round = 0; round < 20; round++) {
      const batch = new ObjectBatch(objects)
      for (let i = 0; i < (round % 2 ? 60 : 5); i++) ids.push(batch.put('blob', Buffer.from(round + ' ' + i + ' ' + (i % 2 ? ${seed} : ''))))
      batch.finish()
    }
    console.log(ids.join(' '))`
  const run = promisify(execFile)
  const outputs = await Promise.all(
    [1, 2, 3].map(seed => run(process.execPath, ['--input-type=module', '-e', code(seed)])),
  )
  for (const { stdout } of outputs) {
    for (const id of stdout.trim().split(' ')) expect(place.objects.read(id).length).toBeGreaterThan(0)
  }
  expect(place.fsck()).toEqual([])
})

test('prune keeps the trees it is told to and those of folders that are there, and removes the rest', async () => {
  using place = await lab()
  const workspace = await place.workspace(many(100))
  const first = await workspace.snapshot()
  write(workspace.folder, { 'only-then.txt': 'gone later\n', 'mode.txt': ['x', 0o600] })
  const second = await workspace.snapshot()
  write(workspace.folder, { 'only-then.txt': 'now\n' })
  const third = await workspace.snapshot()
  const lost = idOf('blob', Buffer.from('gone later\n'))

  const young = await prune(place.objects, [first.tree])
  expect(young).toMatchObject({ removed: 0 })
  expect(place.objects.has(lost)).toBe(true)

  const report = await prune(place.objects, [first.tree], { now: Date.now() + 1e9 })
  expect(report.removed).toBe(2)
  expect(report.after).toBeLessThan(report.before)
  expect(place.objects.has(lost)).toBe(false)
  expect(place.objects.has(second.tree)).toBe(false)
  expect([...filesOf(place.objects, first.tree)]).toHaveLength(100)
  for (const { entry } of filesOf(place.objects, third.tree)) place.objects.read(entry.id)
  expect(place.fsck()).toEqual([])
  // The index still fits: the next snapshot names only what is there.
  expect((await workspace.snapshot()).tree).toBe(third.tree)
  expect(await prune(place.objects, [first.tree], { now: Date.now() + 1e9 })).toMatchObject({ removed: 0 })
})

test('files that become again what they were before a process was killed are kept, also after a prune', async () => {
  using place = await lab()
  const { folder } = await place.workspace({ 'a/b': 'first' })
  const first = await Workspace.open(folder, place.objects)
  const { tree } = await first.snapshot()
  await first.close()
  write(folder, { 'a/b': 'second' })
  // Killed: its index is not kept, and the one before stays.
  await (await Workspace.open(folder, place.objects)).snapshot()
  await prune(place.objects, [], { now: Date.now() + 1e9 })

  write(folder, { 'a/b': 'first' })
  place.objects.close()
  expect((await (await Workspace.open(folder, place.objects)).snapshot()).tree).toBe(tree)
  expect(blobAt(place.objects, tree, 'a/b')?.toString()).toBe('first')
  expect(place.fsck()).toEqual([])
})

test('an object that is used again while a prune is near becomes young', async () => {
  using place = await lab()
  const id = place.objects.put('blob', Buffer.from('again'))
  const old = new Date(Date.now() - 10_000_000)
  utimesSync(place.objects.loose.pathOf(id), old, old)
  place.objects.put('blob', Buffer.from('again'))
  expect(statSync(place.objects.loose.pathOf(id)).mtimeMs).toBeGreaterThan(old.getTime())
  await prune(place.objects, [])
  expect(place.objects.has(id)).toBe(true)
})

test('prune removes nothing when a tree that it should keep is not whole', async () => {
  using place = await lab()
  const id = place.objects.put('blob', Buffer.from('stays'))
  const later = { now: Date.now() + 1e9 }
  await expect(prune(place.objects, ['1'.repeat(64)], later)).rejects.toMatchObject({ code: 'unknown-blob' })
  expect(place.objects.has(id)).toBe(true)
})
