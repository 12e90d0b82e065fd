import {
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { localBackend } from '../../../src/sandbox/drivers/local/driver.ts'
import type { ExecHandle, Sandbox } from '../../../src/sandbox/spec.ts'
import { defaultLimits } from '../../../src/sandbox/workspace/limits.ts'
import { ObjectStore } from '../../../src/sandbox/workspace/objects.ts'
import { KnownContent, RemoteWorkspace } from '../../../src/sandbox/workspace/remote.ts'
import { readLook } from '../../../src/sandbox/workspace/remote-look.ts'
import { Workspace } from '../../../src/sandbox/workspace/workspace.ts'
import { temporaryFolder } from '../make.ts'

let folder: ReturnType<typeof temporaryFolder>
let objects: ObjectStore
const opened: Sandbox[] = []

beforeEach(async () => {
  folder = temporaryFolder()
  objects = await ObjectStore.open(join(folder.path, 'objects'))
})
afterEach(async () => {
  await Promise.all(opened.splice(0).map(sandbox => sandbox.close()))
  objects.close()
  folder[Symbol.dispose]()
})

/** A sandbox whose folder only its commands reach, and how many bytes its commands write. */
async function remote({ isText = false } = {}) {
  const sandbox = await localBackend().open(undefined)
  opened.push(sandbox)
  const traffic = { out: 0, in: 0, commands: 0 }
  const exec: Sandbox['exec'] = (command, options) => {
    traffic.commands++
    traffic.in += (options?.stdin as Uint8Array | undefined)?.length ?? 0
    const handle: ExecHandle = sandbox.exec(command, options)
    void handle.result.then(({ stdout }) => {
      traffic.out += stdout.length
    })
    return handle
  }
  const { id, backend, cwd, files } = sandbox
  const capabilities = { ...sandbox.capabilities, binaryOutput: !isText }
  const shown = { id, backend, cwd, files, capabilities, exec, close: async () => {} } as unknown as Sandbox
  const workspace = new RemoteWorkspace(shown, objects, new KnownContent())
  return { path: cwd, sandbox, workspace, traffic }
}

/** A folder with one of everything. */
function fill(path: string): void {
  mkdirSync(join(path, 'a/b'), { recursive: true, mode: 0o755 })
  mkdirSync(join(path, 'empty'), { mode: 0o750 })
  writeFileSync(join(path, 'a/b/plain'), 'plain\n')
  writeFileSync(join(path, 'a/nothing'), '')
  writeFileSync(join(path, 'run.sh'), '#!/bin/sh\n', { mode: 0o700 })
  writeFileSync(
    join(path, 'bytes'),
    Uint8Array.from({ length: 70_000 }, (_, i) => (i * 7) % 256),
  )
  for (const name of [
    'with space',
    'line\nfeed',
    'back\\slash',
    'quo\'te"',
    'größe 🎈',
    '-dash',
    '$(x)',
    '*',
  ]) {
    writeFileSync(join(path, name), name)
  }
  writeFileSync(join(path, 'a', `${'long'.repeat(40)}.txt`), 'long name')
  symlinkSync('a/b/plain', join(path, 'link'))
  symlinkSync('../../nowhere\n', join(path, 'a/dangling'))
  mkdirSync(join(path, '.openrath'))
  writeFileSync(join(path, '.openrath/own'), 'ours')
}

describe.each([{ isText: false }, { isText: true }])(
  'a workspace that only commands reach, $isText',
  options => {
    test('has the tree that a folder with the same files has, and is restored from it', async () => {
      const one = await remote(options)
      fill(one.path)
      const local = await Workspace.open(one.path, objects, { keep: false })
      const { tree } = await local.snapshot()
      expect((await one.workspace.snapshot()).tree).toBe(tree)

      const two = await remote(options)
      writeFileSync(join(two.path, 'other'), 'goes')
      mkdirSync(join(two.path, 'link'))
      writeFileSync(join(two.path, 'link/inside'), 'goes too')
      const report = await two.workspace.restore(tree)
      expect([report.tree, report.notRestored]).toEqual([tree, []])
      const names = (path: string) => readdirSync(path, { recursive: true }).map(String).sort()
      expect(names(two.path)).toEqual(names(one.path).filter(name => !name.startsWith('.openrath')))
      expect(readFileSync(join(two.path, 'line\nfeed'), 'utf8')).toBe('line\nfeed')
      expect(readlinkSync(join(two.path, 'a/dangling'))).toBe('../../nowhere\n')
      expect(statSync(join(two.path, 'run.sh')).mode & 0o777).toBe(0o700)
      expect((await (await Workspace.open(two.path, objects, { keep: false })).snapshot()).tree).toBe(tree)
      // And back.
      const back = await two.workspace.restore(report.before)
      expect([back.tree, names(two.path)]).toEqual([report.before, ['link', 'link/inside', 'other']])
    })

    test('sends what changed, and neither what was known nor what was only touched', async () => {
      const { path, workspace, traffic } = await remote(options)
      for (let i = 0; i < 50; i++) writeFileSync(join(path, `f${i}`), `${i}`.repeat(10_000))
      const { tree: before } = await workspace.snapshot()
      expect(traffic.out).toBeGreaterThan(500_000)
      traffic.out = 0
      await workspace.snapshot()
      expect(traffic.out).toBeLessThan(20_000)
      traffic.out = 0
      writeFileSync(join(path, 'f1'), 'changed')
      const { tree } = await workspace.snapshot()
      expect(tree).not.toBe(before)
      expect(traffic.out).toBeLessThan(20_000)
      traffic.in = 0
      await workspace.restore(before)
      expect([readFileSync(join(path, 'f1'), 'utf8').length, workspace.tree]).toEqual([10_000, before])
      expect(traffic.in).toBeLessThan(30_000)
    })

    test('sees a change of the same length in the same second', async () => {
      const { path, workspace } = await remote(options)
      const trees = new Set<string>()
      for (let i = 0; i < 10; i++) {
        writeFileSync(join(path, 'f'), `${i}`)
        trees.add((await workspace.snapshot()).tree)
      }
      expect(trees.size).toBe(10)
    })
  },
)

test('what is too big, a pipe or nobody may read is described, and left alone by a restore', async () => {
  const { path, sandbox } = await remote()
  const limits = { file: 100 }
  const workspace = new RemoteWorkspace(sandbox, objects, new KnownContent(), limits)
  writeFileSync(join(path, 'big'), 'x'.repeat(200))
  writeFileSync(join(path, 'small'), 'x')
  await sandbox.exec('mkfifo pipe').result
  const { tree, notKept } = await workspace.snapshot()
  expect(notKept.map(({ path: name, reason }) => [name, reason]).sort()).toEqual([
    ['big', 'too-big'],
    ['pipe', 'fifo'],
  ])
  writeFileSync(join(path, 'small'), 'y')
  const { notRestored } = await workspace.restore(tree)
  expect([notRestored, readFileSync(join(path, 'small'), 'utf8')]).toEqual([[], 'x'])
})

describe('what a sandbox says of its files', () => {
  const stat = (mode: number, name: string) => `${mode.toString(16)} 1 5 5 7 ${name}\n`
  const look = (entries: readonly (readonly [string, number])[]) =>
    Buffer.from(
      `100\n${['.', ...entries.map(([name]) => name)].map(name => `${name}\0`).join('')}\0` +
        `${stat(0o040755, '.')}${entries.map(([name, mode]) => stat(mode, name)).join('')}\0\0done`,
      'latin1',
    )
  const names = (bytes: Buffer) => [...(readLook(bytes, undefined, defaultLimits)?.root.entries.keys() ?? [])]

  test('makes no entry that leads elsewhere', () => {
    const entries = [
      ['./fine', 0o100644],
      ['./..', 0o040755],
      ['./../outside', 0o100644],
      ['/etc/passwd', 0o100644],
      ['./missing/inside', 0o100644],
      ['./fine/inside', 0o100644],
      ['./.openrath', 0o040755],
      ['./.openrath/own', 0o100644],
    ] as const
    expect(names(look(entries))).toEqual(['fine'])
  })

  test('is refused when it is cut off, and asked again when names and descriptions do not fit', () => {
    const whole = look([['./fine', 0o100644]])
    expect(() => readLook(whole.subarray(0, -3), undefined, defaultLimits)).toThrow(/cannot be kept/)
    const other = Buffer.from(whole.toString('latin1').replace(' ./fine\n', ' ./other\n'), 'latin1')
    expect(readLook(other, undefined, defaultLimits)).toBeUndefined()
  })

  test('may not be more than the limit', () => {
    const many = Array.from({ length: 30 }, (_, i) => [`./${i}`, 0o100644] as const)
    expect(() => readLook(look(many), undefined, { ...defaultLimits, files: 10 })).toThrow(/more than 20/)
  })
})
