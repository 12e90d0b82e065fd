import { execFile } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import {
  type ForkedFolder,
  ForkedFolders,
  forkMethods,
} from '../src/sandbox/workspace/fork/forked-folders.ts'
import type { ForkBase } from '../src/sandbox/workspace/fork/method.ts'
import {
  type Bench,
  compareFigures,
  compareTime,
  type Figure,
  judge,
  ratioAtMost,
  type Task,
  valueBelow,
} from './harness.ts'

const run = promisify(execFile)
const many = 50

/** A folder of its own for each branch of a project, by every way that this disk has, beside copying the project. */
export const bench: Bench = async report => {
  const disk = mkdtempSync(join(process.env.OPENRATH_FORK_DISK ?? tmpdir(), 'openrath-bench-'))
  try {
    for (const size of [100, 10_000]) await benchSize(disk, size, report)
  } finally {
    rmSync(disk, { recursive: true, force: true })
  }
}

async function benchSize(disk: string, size: number, report: Parameters<Bench>[0]): Promise<void> {
  const project = join(disk, `project-${size}`)
  writeProject(project, size)
  const files = `${size.toLocaleString('en')} files`
  const copying = copyTask(project, disk)
  const rounds = size > 1_000 ? { rounds: 3, warmUps: 1 } : {}
  for (const method of forkMethods) {
    await using folders = await ForkedFolders.open(join(disk, 'forks'), { methods: [method] }).catch(
      error => {
        console.error(`  not measured, ${error.message}`)
        return { [Symbol.asyncDispose]: async () => {} }
      },
    )
    if (!(folders instanceof ForkedFolders)) continue
    const base: ForkBase = { tree: 'base', fill: folder => copyInto(project, folder) }
    // The base is written before anything is timed, and stays.
    await using held = await folders.fork(base)
    const forking: Task<void> = {
      name: method.name,
      operations: 1,
      run: async () => {
        made.push(await folders.fork(base))
      },
      finish: closeAll,
    }
    const target = method.name === 'overlay' && size > 1_000 ? { target: ratioAtMost(0.05) } : {}
    report(await compareTime(`fork, ${files}`, forking, copying, { ...rounds, ...target }))
    report(await diskLine(`disk of a fork with one file changed, ${files}`, folders, base, project))
    if (method.name !== 'overlay') continue

    const parallel: Task = {
      name: `${many} at once, each`,
      operations: many,
      run: async () => {
        made.push(...(await Promise.all(Array.from({ length: many }, () => folders.fork(base)))))
      },
      finish: closeAll,
    }
    const alone = { ...forking, name: 'one alone' }
    report(await compareTime(`forks in parallel, ${files}`, parallel, alone, rounds))
    report(await compareTime(`fork of a changed fork, ${files}`, layerTask(folders), alone, rounds))
    await appendOne(held)
    const changed: Task = { name: 'upper layer', operations: 1, run: () => held.changed() }
    const scan: Task = {
      name: 'find -newer',
      operations: 1,
      run: () => run('find', [project, '-newer', join(project, 'd0/f0'), '-type', 'f']),
    }
    report(await compareTime(`which file changed, ${files}`, changed, scan, rounds))
    const inside: Task = { name: 'entered', operations: 1, run: () => enter(held, ['true']) }
    const plain: Task = { name: 'plain', operations: 1, run: () => run('true') }
    report(await compareTime(`start of a command, ${files}`, inside, plain))
  }
}

const made: ForkedFolder[] = []
const closeAll = () => Promise.all(made.splice(0).map(folder => folder.close()))

function layerTask(folders: ForkedFolders): Task {
  let count = 0
  return {
    name: 'one file differs',
    operations: 1,
    run: async () => {
      const delta = async (folder: string) => writeFileSync(join(folder, 'd0/f0'), 'changed')
      const fill = () => Promise.reject(new Error('the base is there'))
      made.push(await folders.fork({ tree: `layer-${count++}`, near: 'base', fill, delta }))
    },
    finish: closeAll,
  }
}

function copyTask(project: string, disk: string): Task {
  const copied = join(disk, 'copied')
  return {
    name: 'cp -a',
    operations: 1,
    run: () => run('cp', ['-a', project, copied]),
    finish: () => rm(copied, { recursive: true }),
  }
}

/** What the disk gives away for one fork more. The file system is asked, since shared blocks show nowhere else. */
async function diskLine(what: string, folders: ForkedFolders, base: ForkBase, project: string) {
  const forks = folders.method === 'overlay' ? 20 : 1
  const before = await used(folders.root)
  for (let n = 0; n < forks; n++) {
    const folder = await folders.fork(base)
    made.push(folder)
    await appendOne(folder)
  }
  const value = Math.max(0, (await used(folders.root)) - before) / forks
  await closeAll()
  const { stdout } = await run('du', ['-sk', project])
  const copied: Figure = { value: Number.parseInt(stdout, 10) * 1024, unit: 'bytes', name: 'cp -a' }
  const ours: Figure = { value, unit: 'bytes', name: folders.method }
  if (folders.method !== 'overlay') return compareFigures(what, ours, copied)
  return judge({ ...compareFigures(what, ours, copied) }, valueBelow(64 * 1024))
}

/** `du` counts what lies in a folder, `df` what is gone from the disk; only the latter knows of shared blocks. */
async function used(folder: string): Promise<number> {
  await run('sync', ['-f', folder])
  const shares = /btrfs|xfs/.test((await run('stat', ['-f', '-c', '%T', folder])).stdout)
  const { stdout } = shares
    ? await run('df', ['-k', '--output=used', folder])
    : await run('du', ['-sk', folder])
  return Number.parseInt(/\d+/.exec(stdout)?.[0] ?? '0', 10) * 1024
}

async function appendOne({ host }: ForkedFolder): Promise<void> {
  writeFileSync(join(host.path, 'd0/f0'), 'one line more\n', { flag: 'a' })
}

async function enter({ host }: ForkedFolder, command: readonly string[]): Promise<void> {
  const [program = '', ...args] = [...(host.enter ?? []), ...command]
  await run(program, args)
}

async function copyInto(project: string, folder: string): Promise<void> {
  await run('cp', ['-a', `${project}/.`, folder])
}

/** Files of 10 KB, a hundred in a folder. */
function writeProject(folder: string, files: number): void {
  for (let n = 0; n < files; n++) {
    const inner = join(folder, `d${Math.floor(n / 100)}`)
    if (n % 100 === 0) mkdirSync(inner, { recursive: true })
    writeFileSync(join(inner, `f${n % 100}`), `${n}\n`.repeat(2048).slice(0, 10_240))
  }
}
