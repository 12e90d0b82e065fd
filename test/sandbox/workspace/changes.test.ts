import { chmodSync, mkdirSync, renameSync, rmSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { changesBetween } from '../../../src/sandbox/workspace/changes.ts'
import { compareTrees, filesOf } from '../../../src/sandbox/workspace/compare.ts'
import { Session } from '../../../src/session/session.ts'
import { lab, write } from './make.ts'

test('added, modified, deleted, renamed, modes, folders, links and binary files, by path', async () => {
  using place = await lab()
  const workspace = await place.workspace({
    'a.txt': 'one\ntwo\nthree\n',
    'gone.txt': 'bye\n',
    'old/name.ts': 'moved\n',
    'bin.dat': Buffer.from([0, 1, 2]),
    'run.sh': 'x\n',
    'crlf.txt': 'a\r\nb\r\n',
    'hollow/': '',
    l: '-> a.txt',
    same: 'same',
  })
  const before = await workspace.snapshot()
  const at = (path: string) => join(workspace.folder, path)
  rmSync(at('gone.txt'))
  mkdirSync(at('new'))
  renameSync(at('old/name.ts'), at('new/name.ts'))
  write(workspace.folder, {
    'a.txt': 'one\nTWO\nthree\n',
    'bin.dat': Buffer.from([0, 1, 3]),
    'crlf.txt': 'a\r\nc\r\n',
    'added.txt': 'hi',
    'blank/': '',
  })
  chmodSync(at('run.sh'), 0o755)
  rmSync(at('hollow'), { recursive: true })
  rmSync(at('l'))
  symlinkSync('same', at('l'))
  const after = await workspace.snapshot()

  const changes = await changesBetween(place.objects, before.tree, after.tree)
  expect(changes.map(({ path, change, from }) => [change, path, ...(from ? [from] : [])])).toEqual(
    [
      ['modified', 'a.txt'],
      ['added', 'added.txt'],
      ['modified', 'bin.dat'],
      ['added', 'blank/'],
      ['modified', 'crlf.txt'],
      ['deleted', 'gone.txt'],
      ['deleted', 'hollow/'],
      ['modified', 'l'],
      ['renamed', 'new/name.ts', 'old/name.ts'],
      ['modified', 'run.sh'],
    ].sort((one, other) => (String(one[1]) < String(other[1]) ? -1 : 1)),
  )
  const patchOf = (path: string) => changes.find(change => change.path === path)?.patch
  expect(patchOf('a.txt')).toBe('--- a/a.txt\n+++ b/a.txt\n@@ -1,3 +1,3 @@\n one\n-two\n+TWO\n three\n')
  expect(patchOf('added.txt')).toBe(
    '--- /dev/null\n+++ b/added.txt\n@@ -0,0 +1,1 @@\n+hi\n\\ No newline at end of file\n',
  )
  expect(patchOf('gone.txt')).toContain('+++ /dev/null\n')
  expect(patchOf('crlf.txt')).toContain('-b\r\n+c\r\n')
  expect(patchOf('bin.dat')).toBeUndefined()
  expect(patchOf('new/name.ts')).toBeUndefined()
  expect(patchOf('run.sh')).toBe('old mode 100644\nnew mode 100755\n')
  expect(patchOf('l')).toContain('-a.txt')
  expect(await changesBetween(place.objects, after.tree, after.tree)).toEqual([])
})

test('the other way round is the reverse', async () => {
  using place = await lab()
  const one = await (await place.workspace({ a: '1', b: 'moved' })).snapshot()
  const two = await (await place.workspace({ c: '2', d: 'moved' })).snapshot()
  const names = async (from: string, to: string) =>
    (await changesBetween(place.objects, from, to)).map(({ change, path, from }) => [change, path, from])
  expect(await names(one.tree, two.tree)).toEqual([
    ['deleted', 'a', undefined],
    ['added', 'c', undefined],
    ['renamed', 'd', 'b'],
  ])
  expect(await names(two.tree, one.tree)).toEqual([
    ['added', 'a', undefined],
    ['renamed', 'b', 'd'],
    ['deleted', 'c', undefined],
  ])
})

test('patches are cut at a line, and stop when all of them together are long enough', async () => {
  using place = await lab()
  const lines = (word: string) => Array.from({ length: 200 }, (_, i) => `${word} ${i}\n`).join('')
  const one = await (await place.workspace({ a: lines('a'), b: lines('a'), c: lines('a') })).snapshot()
  const two = await (await place.workspace({ a: lines('b'), b: lines('b'), c: lines('b') })).snapshot()
  const cut = await changesBetween(place.objects, one.tree, two.tree, { patch: 300 })
  expect(cut[0]?.patch).toMatch(/\n-a \d+\n… \d+ more characters\n$/)
  expect(cut[0]?.patch?.length).toBeLessThan(340)
  const some = await changesBetween(place.objects, one.tree, two.tree, { patch: 300, patches: 400 })
  expect(some.map(({ patch }) => patch !== undefined)).toEqual([true, true, false])
  const none = await changesBetween(place.objects, one.tree, two.tree, { patch: 0 })
  expect(none.every(({ patch }) => patch === undefined)).toBe(true)
  const small = await changesBetween(place.objects, one.tree, two.tree, { file: 100 })
  expect(small.every(({ patch }) => patch === undefined)).toBe(true)
})

test('a session takes the list, whatever the names are', async () => {
  using place = await lab()
  const empty = await (await place.workspace()).snapshot()
  const workspace = await place.workspace({ 'new\nline': 'x', ünï: 'x', '\u{1F600}': 'x' })
  const { writeFileSync } = await import('node:fs')
  writeFileSync(Buffer.concat([Buffer.from(`${workspace.folder}/b`), Buffer.from([0xff])]), 'x')
  const { tree } = await workspace.snapshot()
  const files = await changesBetween(place.objects, empty.tree, tree)
  expect(files).toHaveLength(4)
  const session = Session.fromUserMessage('go').append({
    kind: 'tool-result',
    callId: '1',
    tool: 'write',
    outcome: { kind: 'value', value: null },
    files,
    tree,
  })
  expect(session.verify().ok).toBe(true)
})

test('folders that are equal are not opened', async () => {
  using place = await lab()
  const files = Object.fromEntries(Array.from({ length: 50 }, (_, i) => [`d${i}/f`, `${i}`]))
  const workspace = await place.workspace(files)
  const before = await workspace.snapshot()
  write(workspace.folder, { 'd7/f': 'changed' })
  const after = await workspace.snapshot()
  let read = 0
  const original = place.objects.read.bind(place.objects)
  place.objects.read = (id, kind) => {
    read++
    return original(id, kind)
  }
  expect([...compareTrees(place.objects, before.tree, after.tree)].map(({ path }) => path)).toEqual(['d7/f'])
  expect(read).toBe(4)
  place.objects.read = original
  expect([...filesOf(place.objects, after.tree)].map(({ path }) => path)).toHaveLength(50)
})
