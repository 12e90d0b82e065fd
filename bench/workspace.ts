import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdirSync, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { changesBetween } from '../src/sandbox/workspace/changes.ts'
import { mergeTrees } from '../src/sandbox/workspace/merge.ts'
import { ObjectStore } from '../src/sandbox/workspace/objects.ts'
import { Workspace } from '../src/sandbox/workspace/workspace.ts'
import { type Bench, compareFigures, compareTime, type Line, ratioAtMost, valueBelow } from './harness.ts'

/** Snapshot, restore, diff and merge of a folder of 100 and of 10,000 files of 10 KB, beside git and cp doing the same. */
export const bench: Bench = async report => {
  for (const count of [100, 10_000]) {
    const root = mkdtempSync(join(tmpdir(), 'openrath-bench-'))
    try {
      await measure(root, count, report)
    } finally {
      rmSync(root, { recursive: true, force: true })
    }
  }
}

async function measure(root: string, count: number, report: (line: Line) => void): Promise<void> {
  const folder = join(root, 'files')
  const paths = makeFiles(folder, count)
  const path = paths[1] as string
  const name = count.toLocaleString('en')
  const few = { rounds: count > 1_000 ? 3 : 7, warmUps: 1 }
  const some = { rounds: 9, warmUps: 3 }
  let edits = 0
  const edit = () => writeFileSync(join(folder, path), `${textOf(1)}// ${edits++}\n`)
  let stores = 0
  const newGit = () => {
    const git = new Git(join(root, `git${stores++}`), folder)
    git.run('init', '-q', '--bare', '.')
    return git
  }
  const newStore = () => ObjectStore.open(join(root, `store${stores++}`))

  report(
    await compareTime(
      `first snapshot of ${name} files`,
      {
        name: 'into an empty store',
        operations: 1,
        prepare: async () => Workspace.open(folder, await newStore()),
        run: workspace => workspace.snapshot(),
        finish: workspace => rmSync(workspace.objects.path, { recursive: true }),
      },
      {
        name: 'git add -A -f, write-tree',
        operations: 1,
        prepare: newGit,
        run: git => git.snapshot(),
        finish: git => rmSync(git.home, { recursive: true }),
      },
      { ...few, target: ratioAtMost(1) },
    ),
  )

  const objects = await newStore()
  const workspace = await Workspace.open(folder, objects)
  const { tree } = await workspace.snapshot()
  const git = newGit()
  const gitTree = git.snapshot()
  report(
    compareFigures(
      `bytes of the first snapshot of ${name} files`,
      { value: bytesIn(objects.path), unit: 'bytes', name: 'until pruned' },
      { value: bytesIn(git.home), unit: 'bytes', name: 'git, compressed' },
    ),
  )

  const again = { name: 'git add -A -f, write-tree', operations: 1, run: () => git.snapshot() }
  const atAll = { name: 'looking everywhere', operations: 1, run: () => workspace.snapshot() }
  report(await compareTime(`snapshot of ${name} files, nothing changed`, atAll, again, some))
  report(
    await compareTime(
      `snapshot of ${name} files, 1 changed`,
      { ...atAll, prepare: edit },
      { ...again, prepare: edit },
      { ...some, target: ratioAtMost(3) },
    ),
  )
  report(
    await compareTime(
      `snapshot of ${name} files, 1 known path`,
      { name: 'per call', operations: 1, prepare: edit, run: () => workspace.snapshot([path]) },
      { name: 'git update-index, write-tree', operations: 1, prepare: edit, run: () => git.snapshot(path) },
      { ...some, target: valueBelow(2e6) },
    ),
  )
  report(
    await compareTime(
      `restore of ${name} files, 1 differs`,
      { name: 'restore', operations: 1, prepare: edit, run: () => workspace.restore(tree) },
      {
        name: 'git read-tree --reset -u',
        operations: 1,
        prepare: edit,
        run: () => git.run('read-tree', '--reset', '-u', gitTree),
      },
      some,
    ),
  )
  report(
    await compareTime(
      `restore of ${name} files into an empty folder`,
      {
        name: 'restore, read again and checked',
        operations: 1,
        prepare: async () => {
          mkdirSync(join(root, 'copy'))
          return Workspace.open(join(root, 'copy'), objects, { keep: false })
        },
        run: copy => copy.restore(tree),
        finish: copy => rmSync(copy.folder, { recursive: true }),
      },
      {
        name: 'cp -a',
        operations: 1,
        run: () => execFileSync('cp', ['-a', folder, join(root, 'copy')]),
        finish: () => rmSync(join(root, 'copy'), { recursive: true }),
      },
      few,
    ),
  )

  await workspace.restore(tree)
  const sides: string[] = []
  for (const [own, line] of [
    [2, 'first'],
    [3, 'last'],
  ] as const) {
    writeFileSync(join(folder, paths[own] as string), `${line}\n`)
    const text = textOf(1)
    writeFileSync(join(folder, path), line === 'first' ? `${line}\n${text}` : `${text}${line}\n`)
    sides.push((await workspace.snapshot()).tree)
    await workspace.restore(tree)
  }
  const [ours, theirs] = sides as [string, string]
  const store = new Git(objects.path, folder)
  const root1 = store.run('commit-tree', tree, '-m', 'base')
  const [one, two] = sides.map(side => store.run('commit-tree', side, '-p', root1, '-m', 'side')) as [
    string,
    string,
  ]
  report(
    await compareTime(
      `merge of two branches of ${name} files`,
      {
        name: '1 file both changed, 1 each',
        operations: 1,
        run: () => mergeTrees(objects, tree, ours, [theirs]),
      },
      { name: 'git merge-tree', operations: 1, run: () => store.run('merge-tree', '--write-tree', one, two) },
      some,
    ),
  )
  report(
    await compareTime(
      `changes between two trees of ${name} files`,
      { name: '3 files, patches', operations: 1, run: () => changesBetween(objects, ours, theirs) },
      {
        name: 'git diff-tree -r -p',
        operations: 1,
        run: () => store.run('diff-tree', '-r', '-p', ours, theirs),
      },
      some,
    ),
  )
  await workspace.close()
  objects.close()
}

class Git {
  readonly home: string
  readonly #folder: string

  constructor(home: string, folder: string) {
    this.home = home
    this.#folder = folder
    mkdirSync(home, { recursive: true })
  }

  run(...args: string[]): string {
    const isInit = args[0] === 'init'
    const where = isInit ? [] : [`--git-dir=${this.home}`, `--work-tree=${this.#folder}`]
    const identity = ['-c', 'user.name=bench', '-c', 'user.email=bench@example.org']
    const cwd = isInit ? this.home : this.#folder
    return execFileSync('git', [...where, ...identity, ...args], {
      cwd,
      encoding: 'utf8',
      maxBuffer: 2 ** 28,
    }).trim()
  }

  snapshot(path?: string): string {
    if (path === undefined) this.run('add', '-A', '-f', '.')
    else this.run('update-index', '--add', path)
    return this.run('write-tree')
  }
}

function makeFiles(folder: string, count: number): string[] {
  return Array.from({ length: count }, (_, i) => {
    const path = `d${i % 50}/s${Math.floor(i / 50) % 10}/f${i}.js`
    mkdirSync(dirname(join(folder, path)), { recursive: true })
    writeFileSync(join(folder, path), textOf(i))
    return path
  })
}

function textOf(i: number): string {
  let text = ''
  for (let line = 0; text.length < 10_000; line++) {
    const digest = createHash('md5').update(`${i}:${line}`).digest('hex')
    text += `const value${line} = compute('${digest}', ${line * i})\n`
  }
  return text
}

function bytesIn(folder: string): number {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter(entry => entry.isFile())
    .reduce((sum, entry) => sum + statSync(join(entry.parentPath, entry.name)).size, 0)
}
