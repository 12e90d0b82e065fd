import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  appendFileSync,
  chmodSync,
  closeSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  renameSync,
  rmSync,
  symlinkSync,
  truncateSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs'
import { stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { describe, expect, test } from 'vitest'
import { move } from '../../src/sandbox/host/move.ts'
import {
  type ForkedFolder,
  ForkedFolders,
  forkMethods,
} from '../../src/sandbox/workspace/fork/forked-folders.ts'
import type { ForkBase, ForkMethodName } from '../../src/sandbox/workspace/fork/method.ts'
import { isRunning } from './make.ts'

// Elsewhere this file is run again for other methods, on disks that have them.
const disk = process.env.OPENRATH_FORK_DISK ?? tmpdir()
const wanted = (process.env.OPENRATH_FORK_METHODS ?? 'overlay,copy').split(',') as ForkMethodName[]

const { probed } = await withRoot(async root => {
  await using folders = await ForkedFolders.open(root)
  return { probed: folders.probed }
})
const available = wanted.filter(name => probed.some(probe => probe.name === name && probe.available))
for (const { name, reason } of probed) {
  if (wanted.includes(name) && reason) console.log(`not tested: ${name}, because ${reason}`)
}

test('it uses the first way that works, and says of every other why not', async () => {
  await withRoot(async root => {
    await using folders = await ForkedFolders.open(root)
    expect(folders.probed.map(({ name }) => name)).toEqual(['overlay', 'btrfs', 'reflink', 'copy'])
    expect(folders.method).toBe(folders.probed.find(probe => probe.available)?.name)
    for (const probe of folders.probed) expect(probe.available).toBe(probe.reason === undefined)
    expect(folders.probed.find(({ name }) => name === 'copy')).toEqual({ name: 'copy', available: true })
  })
})

test('without any way it refuses, and leaves nothing', async () => {
  await withRoot(async root => {
    const never = {
      ...(forkMethods[0] as (typeof forkMethods)[0]),
      probe: async () => ({ available: false, reason: 'no' }),
    }
    const opening = ForkedFolders.open(root, { methods: [never] })
    await expect(opening).rejects.toMatchObject({
      code: 'sandbox-unavailable',
      message: expect.stringContaining('overlay: no'),
    })
    expect(readdirSync(root)).toEqual([])
  })
})

describe.each(available)('%s', name => {
  const open = (root: string) =>
    ForkedFolders.open(root, { methods: forkMethods.filter(method => method.name === name) })

  const withFolders = (work: (folders: ForkedFolders, root: string) => Promise<void>) =>
    withRoot(async root => {
      await using folders = await open(root)
      expect(folders.method).toBe(name)
      await work(folders, root)
      expect(mountsIn(root)).toEqual([])
      await folders.close()
      expect(readdirSync(root)).toEqual([])
    })

  test('a branch starts with the files of its base: contents, modes, links, empty folders', () =>
    withFolders(async (folders, root) => {
      writeProject(join(root, 'expected'))
      const branch = await folders.fork(project('t'))
      expect(picture(branch.host.path)).toEqual(picture(join(root, 'expected')))
      expect(Object.keys(picture(branch.host.path)).length).toBe(14)
      rmSync(join(root, 'expected'), { recursive: true })
    }))

  test('siblings do not see each other, and neither the base nor a later branch sees them', () =>
    withFolders(async folders => {
      const base = project('t')
      const [one, two] = await Promise.all([folders.fork(base), folders.fork(base)])
      const before = picture(two.host.path)
      changeAll(one.host.path)
      writeFileSync(join(two.host.path, 'two'), 'two')
      expect(picture(one.host.path)).not.toHaveProperty('two')
      expect(picture(two.host.path)).toEqual({ ...before, two: 'file 644 two' })
      const three = await folders.fork(base)
      expect(picture(three.host.path)).toEqual(before)
      expect(base.fills).toBe(1)
    }))

  test('commands see the files of their branch and run as the same user', () =>
    withFolders(async folders => {
      const [one, two] = [await folders.fork(project('t')), await folders.fork(project('t'))]
      const said = command(one, 'cat a.txt; printf new > made; rm -r dir; mv other moved; id -u; pwd')
      expect(said).toBe(`a${process.getuid?.()}\n${one.host.inside ?? one.host.path}\n`)
      expect(command(two, 'ls')).toBe(command(await folders.fork(project('t')), 'ls'))
      expect(readFileSync(join(one.host.path, 'made'), 'utf8')).toBe('new')
      expect(readFileSync(join(one.host.path, 'moved/x'), 'utf8')).toBe('x')
      expect(lstatSync(join(one.host.path, 'made')).uid).toBe(process.getuid?.())
      expect(existsSync(join(one.host.path, 'dir'))).toBe(false)
    }))

  test('fifty branches at once: the base is written once, and each has its own files', () =>
    withFolders(async folders => {
      const base = project('t')
      const branches = await Promise.all(Array.from({ length: 50 }, () => folders.fork(base)))
      expect(new Set(branches.map(branch => branch.host.path)).size).toBe(50)
      for (const [i, { host }] of branches.entries()) writeFileSync(join(host.path, 'dir/b.txt'), `${i}`)
      const read = branches.map(({ host }) => readFileSync(join(host.path, 'dir/b.txt'), 'utf8'))
      expect(read).toEqual(branches.map((_, i) => String(i)))
      expect(base.fills).toBe(1)
      await Promise.all(branches.map(branch => branch.close()))
    }))

  test('a branch of a branch is reached by what differs, and keeps its files when the first is gone', () =>
    withFolders(async folders => {
      const first = await folders.fork(project('t0'))
      const untouched = picture(first.host.path)
      changeAll(first.host.path)
      const changed = picture(first.host.path)
      const started: unknown[] = []
      const base = project('t1', {
        near: 't0',
        delta: async folder => {
          started.push(picture(folder))
          changeAll(folder)
        },
      })
      const [second, twin] = await Promise.all([folders.fork(base), folders.fork(base)])
      expect(started).toEqual([untouched])
      expect(base.fills).toBe(0)
      expect(picture(second.host.path)).toEqual(changed)
      await first.close()
      writeFileSync(join(second.host.path, 'a.txt'), 'second')
      rmSync(join(second.host.path, 'dir'), { recursive: true })
      expect(picture(twin.host.path)).toEqual(changed)
      const delta = async (folder: string) => writeFileSync(join(folder, 'third'), '3')
      const third = await folders.fork(project('t2', { near: 't1', delta }))
      expect(picture(third.host.path)).toEqual({ ...changed, third: 'file 644 3' })
      expect(picture((await folders.fork(project('t0'))).host.path)).toEqual(untouched)
    }))

  test('a base that is near and not here is not waited for: the whole tree is written', () =>
    withFolders(async folders => {
      const base = project('t1', { near: 't0', delta: () => Promise.reject(new Error('not called')) })
      const branch = await folders.fork(base)
      expect([base.fills, existsSync(join(branch.host.path, 'a.txt'))]).toEqual([1, true])
    }))

  test('a folder of the base is moved, also over an empty one, and not over one that holds something', () =>
    withFolders(async folders => {
      const [one, two] = [await folders.fork(project('t')), await folders.fork(project('t'))]
      const { path } = one.host
      const before = picture(path)
      await move(join(path, 'dir'), join(path, 'renamed'))
      // As file tools name it, who hold the folder open that they work in.
      const held = openSync(path, 'r')
      await move(`/proc/self/fd/${held}/other`, `/proc/self/fd/${held}/empty`)
      closeSync(held)
      await move(join(path, 'a.txt'), join(path, 'renamed/a.txt'))
      const after = picture(path)
      expect(after['renamed/deep/c.txt']).toBe(before['dir/deep/c.txt'])
      expect(after['renamed/run.sh']).toBe('file 755 run')
      expect(after['empty/x']).toBe('file 644 x')
      expect(after['renamed/a.txt']).toBe(before['a.txt'])
      expect(Object.keys(after).filter(at => /^(dir|other|a\.txt)/.test(at) || at.includes('.tmp'))).toEqual(
        [],
      )
      const refused = move(join(two.host.path, 'dir'), join(two.host.path, 'other'))
      await expect(refused).rejects.toMatchObject({ code: expect.stringMatching(/^(ENOTEMPTY|EEXIST)$/) })
      expect(picture(two.host.path)).toEqual(before)
    }))

  test('a tree that cannot be written leaves nothing, and is tried again', () =>
    withFolders(async folders => {
      let tries = 0
      const fill = async (folder: string) => {
        writeFileSync(join(folder, 'half'), '')
        if (tries++ === 0) throw new Error('disk on fire')
      }
      const both = await Promise.allSettled([
        folders.fork({ tree: 't', fill }),
        folders.fork({ tree: 't', fill }),
      ])
      for (const { status, reason } of both as PromiseRejectedResult[]) {
        expect([status, reason.code]).toEqual(['rejected', 'sandbox-failed'])
        expect(reason.message).toContain('disk on fire')
      }
      const branch = await folders.fork({ tree: 't', fill })
      expect(readdirSync(branch.host.path)).toEqual(['half'])
      const broken = project('t1', { near: 't', delta: () => Promise.reject(new Error('no delta')) })
      await expect(folders.fork(broken)).rejects.toThrow('no delta')
      expect(readdirSync((await folders.fork({ tree: 't', fill })).host.path)).toEqual(['half'])
    }))

  test('who gives up waits no longer, and the others get their branch', () =>
    withFolders(async folders => {
      const [gate, abort] = [Promise.withResolvers<void>(), new AbortController()]
      const base: ForkBase = { tree: 't', fill: () => gate.promise }
      const [first, second] = [folders.fork(base, { signal: abort.signal }), folders.fork(base)]
      abort.abort()
      await expect(first).rejects.toMatchObject({ code: 'cancelled' })
      await expect(folders.fork(base, { signal: abort.signal })).rejects.toMatchObject({ code: 'cancelled' })
      gate.resolve()
      expect(readdirSync((await second).host.path)).toEqual([])
    }))

  test('closing a branch takes its files, closing all of them everything', () =>
    withFolders(async (folders, root) => {
      const [one, two] = [await folders.fork(project('t')), await folders.fork(project('t'))]
      mkdirSync(join(one.host.path, 'locked/in'), { recursive: true })
      chmodSync(join(one.host.path, 'locked'), 0o500)
      await Promise.all([one.close(), one.close()])
      expect(existsSync(one.host.path)).toBe(false)
      expect(readFileSync(join(two.host.path, 'a.txt'), 'utf8')).toBe('a')
      const gate = Promise.withResolvers<void>()
      const fill = (folder: string) => gate.promise.then(() => writeProject(folder))
      const pending = folders.fork({ tree: 't2', fill })
      const closing = folders.close()
      // Time enough for a close that does not wait to be over.
      await two.close()
      for (let n = 0; n < 100; n++) await stat(root)
      gate.resolve()
      await closing
      expect(existsSync((await pending).host.path)).toBe(false)
      expect(readdirSync(root)).toEqual([])
      await expect(folders.fork(project('t'))).rejects.toMatchObject({ code: 'sandbox-closed' })
    }))

  test('bases that nobody needs are kept for a while, those that are needed as long as they are', () =>
    withFolders(async folders => {
      const bases = Array.from({ length: 7 }, (_, i) => project(`t${i}`))
      const needed = await folders.fork(bases[0] as ForkBase)
      for (const base of bases.slice(1)) await (await folders.fork(base)).close()
      for (const base of bases.toReversed()) await (await folders.fork(base)).close()
      expect(bases.map(({ fills }) => fills)).toEqual([1, 2, 2, 1, 1, 1, 1])
      expect(readFileSync(join(needed.host.path, 'dir/b.txt'), 'utf8')).toBe('b')
    }))

  test('a killed process leaves a folder that is found and removed, and no mount', () =>
    withRoot(async root => {
      using child = startChild(root, name, 'wait')
      const { holder } = await child.said
      await using folders = await open(root)
      expect(await folders.leftovers()).toEqual([])
      expect(await folders.collect()).toEqual({ removed: [], kept: [] })

      process.kill(child.pid, 'SIGKILL')
      await child.ended
      if (holder !== undefined) await expect.poll(() => isRunning(holder)).toBe(false)
      expect(holder !== undefined).toBe(name === 'overlay')
      const [found, ...more] = await folders.leftovers()
      expect(more).toEqual([])
      expect(found).toMatchObject({ state: 'gone', owner: { pid: child.pid } })
      expect(found?.bytes).toBeGreaterThan(500_000)
      expect((await folders.collect({ dryRun: true })).removed).toEqual([found])
      expect(existsSync(found?.path as string)).toBe(true)
      expect((await folders.collect()).removed).toEqual([found])
      expect(await folders.leftovers()).toEqual([])
      expect(existsSync(found?.path as string)).toBe(false)
      expect(mountsIn(root)).toEqual([])
    }))

  test('two processes work in one place at once', () =>
    withFolders(async (folders, root) => {
      using child = startChild(root, name, 'wait')
      const base = { tree: 't', fill: async (folder: string) => writeFileSync(join(folder, 'file'), 'mine') }
      const [mine] = await Promise.all([folders.fork(base), child.said])
      expect(picture(mine.host.path)).toMatchObject({ file: 'file 644 mine' })
      process.kill(child.pid, 'SIGKILL')
      await child.ended
      await folders.collect()
      expect(picture(mine.host.path)).toMatchObject({ file: 'file 644 mine' })
      expect(picture((await folders.fork(base)).host.path)).toMatchObject({ file: 'file 644 mine' })
    }))

  test('a process that ends without closing leaves nothing', () =>
    withRoot(async root => {
      using child = startChild(root, name, 'exit')
      const { holder } = await child.said
      expect(await child.ended).toBe(0)
      expect(readdirSync(root)).toEqual([])
      if (holder !== undefined) await expect.poll(() => isRunning(holder)).toBe(false)
    }))

  test('what changed is known exactly, or not at all', () =>
    withFolders(async folders => {
      const branch = await folders.fork(project('t'))
      const { path } = branch.host
      expect(await branch.changed()).toEqual(name === 'overlay' ? [] : undefined)
      if (name !== 'overlay') return
      const changes = async (change: () => unknown) => {
        await using fresh = await folders.fork(project('t'))
        process.chdir(fresh.host.path)
        await change()
        process.chdir('/')
        return await fresh.changed()
      }
      expect(path).toContain('/proc/')
      expect(await changes(() => appendFileSync('dir/b.txt', '+'))).toEqual(['dir/b.txt'])
      expect(await changes(() => rmSync('dir/deep', { recursive: true }))).toEqual(['dir/deep'])
      expect(await changes(() => chmodSync('dir', 0o700))).toEqual(['dir'])
      expect(await changes(() => chmodSync('.', 0o700))).toEqual(['.'])
      expect(await changes(() => writeProject('new'))).toContain('new/dir/deep/c.txt')
      const remade = () => {
        rmSync('dir', { recursive: true })
        mkdirSync('dir')
        writeFileSync('dir/b.txt', 'again')
      }
      expect(await changes(remade)).toEqual(['dir/b.txt', 'dir/deep', 'dir/run.sh'])
      const swapped = () => {
        rmSync('dir', { recursive: true })
        writeFileSync('dir', 'a file now')
        unlinkSync('a.txt')
        mkdirSync('a.txt/sub', { recursive: true })
      }
      expect(await changes(swapped)).toEqual(['a.txt', 'a.txt/sub', 'dir'])
      const moved = () => move('other', 'dir/other')
      expect(await changes(moved)).toEqual(['dir/other', 'dir/other/x', 'other'])
    }))
})

describe.runIf(available.includes('overlay'))('overlay alone', () => {
  const withOverlay = (work: (folders: ForkedFolders, root: string) => Promise<void>) =>
    withRoot(async root => {
      await using folders = await ForkedFolders.open(root, { methods: forkMethods.slice(0, 1) })
      await work(folders, root)
    })

  test('renaming a folder of the base by the system call fails as on two disks', () =>
    withOverlay(async folders => {
      const { host } = await folders.fork(project('t'))
      const rename = (from: string, to: string) => renameSync(join(host.path, from), join(host.path, to))
      expect(() => rename('dir', 'renamed')).toThrow(expect.objectContaining({ code: 'EXDEV' }))
      rename('dir/b.txt', 'dir/c.txt')
      mkdirSync(join(host.path, 'fresh'))
      rename('fresh', 'renamed')
      expect(readdirSync(join(host.path, 'dir')).sort()).toEqual(['c.txt', 'deep', 'run.sh'])
    }))

  test('nothing of a branch is seen without entering, and a branch costs a few KB', () =>
    withOverlay(async (folders, root) => {
      const size = () => Number.parseInt(execFileSync('du', ['-sk', root], { encoding: 'utf8' }), 10)
      const base = {
        tree: 't',
        fill: async (at: string) => writeFileSync(join(at, 'f'), new Uint8Array(2e6)),
      }
      const { host } = await folders.fork(base)
      const before = size()
      await Promise.all(Array.from({ length: 10 }, () => folders.fork(base)))
      expect(size() - before).toBeLessThanOrEqual(10 * 32)
      expect(host.path.endsWith(host.inside as string)).toBe(true)
      expect(existsSync(join(host.path, 'f'))).toBe(true)
      expect(existsSync(host.inside as string)).toBe(false)
    }))

  test('after thirty layers a base is written whole, and every branch of the chain is right', () =>
    withOverlay(async folders => {
      const whole = (i: number) => async (folder: string) => {
        for (let n = Math.max(0, i - 2); n <= i; n++) writeFileSync(join(folder, `f${n}`), `${n}`)
      }
      let fills = 0
      for (let i = 0; i < 40; i++) {
        const branch = await folders.fork({
          tree: `t${i}`,
          near: `t${i - 1}`,
          fill: folder => {
            fills++
            return whole(i)(folder)
          },
          delta: async folder => {
            rmSync(join(folder, `f${i - 3}`), { force: true })
            writeFileSync(join(folder, `f${i}`), `${i}`)
          },
        })
        const expected = [i - 2, i - 1, i].filter(n => n >= 0).map(n => `f${n}`)
        expect(readdirSync(branch.host.path).sort()).toEqual(expected.sort())
        if (i === 39) expect(await branch.changed()).toEqual([])
        if (i === 39) unlinkSync(join(branch.host.path, 'f37'))
        if (i === 39) expect(await branch.changed()).toEqual(['f37'])
        if (i % 2) await branch.close()
      }
      expect(fills).toBe(2)
    }))

  test('a layer that could not be written, or is still written to, is no base and leaves no mount', () =>
    withOverlay(async folders => {
      const { host } = await folders.fork(project('t'))
      const table = `${/^\/proc\/\d+/.exec(host.path)?.[0]}/mounts`
      // The machine may have overlays of its own, which are there too.
      const others = new Set(readFileSync('/proc/self/mounts', 'utf8').split('\n'))
      const ours = (line: string) => line.startsWith('overlay') && !others.has(line)
      const mounts = () => readFileSync(table, 'utf8').split('\n').filter(ours)
      const before = mounts()
      expect(before.length).toBe(1)
      const failing = project('t1', { near: 't', delta: () => Promise.reject(new Error('no delta')) })
      await expect(folders.fork(failing)).rejects.toThrow('no delta')
      let file = -1
      const delta = async (folder: string) => {
        file = openSync(join(folder, 'a.txt'), 'a')
      }
      await expect(folders.fork(project('t1', { near: 't', delta }))).rejects.toThrow('busy')
      closeSync(file)
      expect(mounts()).toEqual(before)
    }))

  test('when the holder of the mounts is killed, its branches are gone and not written elsewhere; others can be made', () =>
    withOverlay(async folders => {
      const lost = await folders.fork(project('t'))
      const holder = Number(/^\/proc\/(\d+)\//.exec(lost.host.path)?.[1])
      process.kill(holder, 'SIGKILL')
      await expect.poll(() => isRunning(holder)).toBe(false)
      expect(() => writeFileSync(join(lost.host.path, 'x'), '')).toThrow(/ENOENT/)
      const found = await folders.fork(project('t'))
      expect(readFileSync(join(found.host.path, 'a.txt'), 'utf8')).toBe('a')
      await lost.close()
    }))
})

/** Mounts of this process's namespace; a path is known by its random end, since others of its characters are escaped there. */
function mountsIn(root: string): string[] {
  const lines = readFileSync('/proc/self/mounts', 'utf8').split('\n')
  return lines.filter(line => line.includes(root.slice(-6)))
}

/** Runs a script in a branch as a sandbox would. */
function command({ host }: ForkedFolder, script: string): string {
  const inside = host.inside ?? host.path
  const [program = '', ...args] = [
    ...(host.enter ?? []),
    'sh',
    '-ec',
    'cd "$1"; eval "$2"',
    'sh',
    inside,
    script,
  ]
  return execFileSync(program, args, { encoding: 'utf8' })
}

function startChild(root: string, method: string, then: 'wait' | 'exit') {
  const program = join(import.meta.dirname, 'fork-child.ts')
  const child = spawn(process.execPath, [program, root, method, then], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const ended = once(child, 'exit').then(([code]) => code as number | null)
  const said = once(createInterface(child.stdout), 'line').then(
    ([line]) => JSON.parse(line) as { holder?: number },
  )
  return {
    pid: child.pid as number,
    said,
    ended,
    [Symbol.dispose]: () => void child.kill('SIGKILL'),
  }
}

async function withRoot<T>(work: (root: string) => Promise<T>): Promise<T> {
  const root = mkdtempSync(join(disk, "openrath fork: test, it's-"))
  try {
    return await work(root)
  } finally {
    rmSync(root, { recursive: true, force: true })
  }
}

function project(tree: string, more: Pick<ForkBase, 'near' | 'delta'> = {}): ForkBase & { fills: number } {
  const base = {
    ...more,
    tree,
    fills: 0,
    fill: async (folder: string) => {
      base.fills++
      writeProject(folder)
    },
  }
  return base
}

function writeProject(folder: string): void {
  for (const name of ['dir/deep', 'other', 'empty', 'own']) mkdirSync(join(folder, name), { recursive: true })
  const files = { 'a.txt': 'a', 'dir/b.txt': 'b', 'dir/deep/c.txt': 'c', 'dir/run.sh': 'run', 'other/x': 'x' }
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text)
  chmodSync(join(folder, 'dir/run.sh'), 0o755)
  chmodSync(join(folder, 'own'), 0o700)
  chmodSync(folder, 0o750)
  writeFileSync(join(folder, 'new\nline, and: more'), 'odd', { mode: 0o600 })
  symlinkSync('dir/b.txt', join(folder, 'link'))
  symlinkSync('/nowhere', join(folder, 'dangling'))
}

/** One of every kind of change to a project. */
function changeAll(folder: string): void {
  const at = (name: string) => join(folder, name)
  appendFileSync(at('a.txt'), ' and more')
  truncateSync(at('dir/b.txt'), 0)
  chmodSync(at('dir/run.sh'), 0o600)
  rmSync(at('dir/deep'), { recursive: true })
  rmSync(at('other'), { recursive: true })
  mkdirSync(at('other'))
  writeFileSync(at('other/y'), 'y')
  rmSync(at('empty'), { recursive: true })
  writeFileSync(at('empty'), 'a file now')
  unlinkSync(at('link'))
  symlinkSync('a.txt', at('link'))
  writeFileSync(at('made'), 'made')
  chmodSync(at('own'), 0o755)
  renameSync(at('new\nline, and: more'), at('plain'))
}

function picture(folder: string): Record<string, string> {
  const found: Record<string, string> = {}
  const walk = (inner: string) => {
    for (const name of readdirSync(join(folder, inner)).sort()) {
      const at = join(inner, name)
      const path = join(folder, at)
      const stat = lstatSync(path)
      const mode = (stat.mode & 0o7777).toString(8)
      if (stat.isSymbolicLink()) found[at] = `link ${readlinkSync(path)}`
      else if (stat.isDirectory()) found[at] = `folder ${mode}`
      else found[at] = `file ${mode} ${readFileSync(path, 'utf8')}`
      if (stat.isDirectory()) walk(at)
    }
  }
  walk('')
  found['.'] = (lstatSync(folder).mode & 0o7777).toString(8)
  return found
}
