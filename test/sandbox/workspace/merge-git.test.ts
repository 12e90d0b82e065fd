import { spawnSync } from 'node:child_process'
import { expect, test } from 'vitest'
import type { Digest } from '../../../src/base/digest.ts'
import { ObjectBatch } from '../../../src/sandbox/workspace/batch.ts'
import { mergeTrees } from '../../../src/sandbox/workspace/merge.ts'
import { idOf, type ObjectKind } from '../../../src/sandbox/workspace/object.ts'
import type { ObjectStore } from '../../../src/sandbox/workspace/objects.ts'
import { type TreeEntry, writeTree } from '../../../src/sandbox/workspace/tree.ts'
import { lab } from './make.ts'

const git = spawnSync('git', ['merge-tree', '-h']).stdout?.toString().includes('--stdin') ?? false
if (!git) console.warn('Merges of folders are not compared with git, which has no merge-tree --stdin here.')
/** `OPENRATH_CASES=2000` for all of them. */
const cases = Number(process.env.OPENRATH_CASES ?? 300)

/** A file: its content, whether it may be run, and whether it is a link. */
interface File {
  readonly content: string
  readonly mode: 0o644 | 0o755
  readonly isLink?: boolean
}
type Folder = Map<string, File>

function numbers(seed: number): (below: number) => number {
  let state = seed
  return below => {
    state = (state * 1103515245 + 12345) & 0x7fffffff
    return Math.floor((state / 0x80000000) * below)
  }
}

const names = ['a', 'b', 'dir/c', 'dir/d', 'dir/deep/e', 'other/f', 'g']

let made = 0

/** Text with either kind of line end, with and without one at the end, bytes, and links. No two are alike, or git would take one for the other. */
function newFile(next: (below: number) => number): File {
  const mode = next(4) === 0 ? 0o755 : 0o644
  const own = `${made++}`
  if (next(8) === 0) return { content: `\0bytes ${own.repeat(9)}`, mode }
  if (next(8) === 0) return { content: `target ${own.repeat(9)}`, mode: 0o644, isLink: true }
  const end = next(4) === 0 ? '\r\n' : '\n'
  const lines = Array.from({ length: 3 + next(12) }, () => `${own} line ${own} ${next(60)}`)
  return { content: lines.join(end) + (next(4) === 0 ? '' : end), mode }
}

function edited(folder: Folder, next: (below: number) => number): Folder {
  const files: Folder = new Map(folder)
  for (let edits = next(4); edits > 0; edits--) {
    const name = names[next(names.length)] as string
    const found = files.get(name)
    const kind = next(6)
    if (found === undefined || kind === 0) files.set(name, newFile(next))
    else if (kind === 1) files.delete(name)
    else if (kind === 2) {
      files.delete(name)
      files.set(`${name}-other`, newFile(next))
    } else if (kind === 3 && !found.isLink)
      files.set(name, { ...found, mode: found.mode === 0o644 ? 0o755 : 0o644 })
    else files.set(name, { ...found, content: editedText(found.content, next) })
  }
  return files
}

function editedText(content: string, next: (below: number) => number): string {
  if (content.startsWith('\0') || !content.includes('\n')) return `${content}.${next(5)}`
  const end = content.includes('\r\n') ? '\r\n' : '\n'
  const lines = content.split(end)
  lines.splice(next(lines.length), next(3), ...Array.from({ length: next(3) }, () => `edit ${next(90)}`))
  return lines.join(end)
}

function treeOf(folder: Folder, batch: ObjectBatch): Digest {
  const entries = new Map<string, TreeEntry>()
  const below = new Map<string, Folder>()
  for (const [path, file] of folder) {
    const [name = '', ...rest] = path.split('/')
    if (rest.length === 0) {
      const id = batch.put('blob', Buffer.from(file.content, 'latin1'))
      entries.set(name, file.isLink ? { kind: 'link', id, mode: 0 } : { kind: 'file', id, mode: file.mode })
    } else below.set(name, (below.get(name) ?? new Map()).set(rest.join('/'), file))
  }
  for (const [name, files] of below)
    entries.set(name, { kind: 'folder', id: treeOf(files, batch), mode: 0o755 })
  return writeTree(entries, batch)
}

function commit(objects: ObjectStore, tree: Digest, parent?: Digest): Digest {
  const who = 'a <a@b> 1 +0000'
  const text = `tree ${tree}\n${parent ? `parent ${parent}\n` : ''}author ${who}\ncommitter ${who}\n\nx\n`
  const kind = 'commit' as ObjectKind
  const id = idOf(kind, Buffer.from(text))
  objects.loose.write(id, kind, Buffer.from(text))
  return id
}

test.runIf(git)(
  `${cases} random merges of folders are those of git merge-tree`,
  { timeout: 300_000 },
  async () => {
    using place = await lab()
    const { objects } = place
    const next = numbers(20261117)
    const asked: { readonly trees: readonly [Digest, Digest, Digest]; readonly pair: string }[] = []
    const batch = new ObjectBatch(objects)
    const folders = Array.from({ length: cases }, () => {
      const base: Folder = new Map(names.filter(() => next(4) > 0).map(name => [name, newFile(next)]))
      return [base, edited(base, next), edited(base, next)].map(folder => treeOf(folder, batch))
    })
    batch.finish()
    for (const [base, ours, theirs] of folders as [Digest, Digest, Digest][]) {
      const root = commit(objects, base)
      const pair = `${commit(objects, ours, root)} ${commit(objects, theirs, root)}`
      asked.push({ trees: [base, ours, theirs], pair })
    }
    const args = [
      '--git-dir',
      objects.path,
      '-c',
      'merge.renames=false',
      '-c',
      'merge.directoryRenames=false',
    ]
    const merges = ['merge-tree', '--write-tree', '--stdin', '--name-only', '--no-messages']
    const input = asked.map(({ pair }) => `${pair}\n`).join('')
    const { stdout } = spawnSync('git', [...args, ...merges], { encoding: 'utf8', input, maxBuffer: 2 ** 28 })
    // For each: 1 or 0, the tree, the paths in conflict, and nothing.
    const answers = stdout.split('\0\0').filter(answer => answer !== '')
    expect(answers).toHaveLength(cases)
    let conflicts = 0
    for (const [i, { trees, pair }] of asked.entries()) {
      const [isClean, tree] = (answers[i] as string).split('\0')
      const [base, ours, theirs] = trees
      const merged = await mergeTrees(objects, base, ours, [theirs])
      const shown = merged.conflicts.map(({ path, kind }) => `${path} ${kind}`).join(', ')
      expect(isClean, `${pair}: ${shown}\n${answers[i]}`).toBe(shown === '' ? '1' : '0')
      if (isClean === '1') expect(merged.tree, pair).toBe(tree)
      else conflicts++
    }
    expect(conflicts).toBeGreaterThan(cases / 20)
  },
)

test('a rename is what goes and what comes: alone it is taken, and beside a change it is a conflict', async () => {
  using place = await lab()
  const { objects } = place
  const batch = new ObjectBatch(objects)
  const file = (content: string): File => ({ content, mode: 0o644 })
  const base = treeOf(new Map([['old', file('1\n2\n')]]), batch)
  const renamed = treeOf(new Map([['new', file('1\n2\n')]]), batch)
  const changed = treeOf(new Map([['old', file('1\nchanged\n')]]), batch)
  const added = treeOf(
    new Map([
      ['old', file('1\n2\n')],
      ['more', file('x')],
    ]),
    batch,
  )
  const both = treeOf(
    new Map([
      ['new', file('1\n2\n')],
      ['more', file('x')],
    ]),
    batch,
  )
  batch.finish()
  expect((await mergeTrees(objects, base, renamed, [added])).tree).toBe(both)
  const { conflicts } = await mergeTrees(objects, base, renamed, [changed])
  expect(conflicts).toMatchObject([{ path: 'old', kind: 'modify-delete' }])
})
