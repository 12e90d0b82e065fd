import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import type { Json } from '../../../src/base/json.ts'
import { HostFiles } from '../../../src/sandbox/host/files.ts'
import { WorkspacePaths } from '../../../src/sandbox/host/paths.ts'
import type { Sandbox } from '../../../src/sandbox/spec.ts'
import { type BuiltinName, builtinTools } from '../../../src/tool/builtin/builtin-tools.ts'
import type { Tool } from '../../../src/tool/spec.ts'
import { outcomeOf } from '../../tool/make.ts'
import { isolated, testHere } from '../isolated-here.ts'
import { temporaryFolder } from '../make.ts'

const secret = 'a secret of another user'

/** A workspace, and beside it what its tools are not to reach. */
function makeFolders(base: string) {
  const [work, outside] = [join(base, 'work'), join(base, 'outside')]
  for (const path of [work, outside]) mkdirSync(path)
  for (const name of ['file', 'canary']) writeFileSync(join(outside, name), secret)
  return { work, outside }
}

const use = (sandbox: Sandbox, name: BuiltinName, args: Json) =>
  outcomeOf(builtinTools([name])[0] as Tool, args, { sandbox: async () => sandbox })

testHere('no built-in tool leaves the workspace, by .., by an absolute path or through a link', async () => {
  using base = temporaryFolder()
  const { work, outside } = makeFolders(base.path)
  symlinkSync(outside, join(work, 'folder'))
  symlinkSync(join(outside, 'file'), join(work, 'link'))
  symlinkSync('../outside/new', join(work, 'to-nothing'))
  await using sandbox = await isolated.open(work)
  const ways = ['../outside/file', join(outside, 'file'), 'folder/file', 'link', 'folder/../outside/file']
  for (const path of ways) {
    const calls: [BuiltinName, Json][] = [
      ['read_workspace_file', { path }],
      ['write_workspace_file', { path, content: 'changed' }],
      ['edit_workspace_file', { path, old: 'secret', new: 'changed' }],
      ['list_workspace_files', { path }],
      ['search_workspace', { path, query: 'secret' }],
      ['workspace_path_exists', { path }],
    ]
    for (const [name, args] of calls) {
      const outcome = await use(sandbox, name, args)
      expect([path, name, outcome.kind]).toEqual([path, name, 'error'])
      expect(JSON.stringify(outcome)).not.toContain(secret)
    }
  }
  for (const path of ['to-nothing', 'folder/new', '../outside/new']) {
    expect((await use(sandbox, 'write_workspace_file', { path, content: 'x' })).kind).toBe('error')
  }
  const report = JSON.stringify([
    await use(sandbox, 'search_workspace', { query: 'secret' }),
    await use(sandbox, 'list_workspace_files', { depth: 20 }),
    await use(sandbox, 'run_shell_command', { cmd: `cat link folder/file '${outside}/file'` }),
    await use(sandbox, 'run_code', { code: `print(open('${outside}/file').read())`, language: 'python' }),
  ])
  expect(report).not.toContain(secret)
  expect(readFileSync(join(outside, 'file'), 'utf8')).toBe(secret)
  expect(existsSync(join(outside, 'new'))).toBe(false)
})

/** Paths in a workspace where a command strikes at the worst moment: between the look at a path and its use. */
class SwappedPaths extends WorkspacePaths {
  #swap: (() => void) | undefined

  constructor(root: string, swap: () => void) {
    super({ root })
    this.#swap = swap
  }

  override async resolve(path: string): Promise<string> {
    return this.#struck(await super.resolve(path))
  }

  override async resolveEntry(path: string): Promise<string> {
    return this.#struck(await super.resolveEntry(path))
  }

  #struck(real: string): string {
    // A rename looks at two paths; the first to be in the folder is enough.
    if (real.includes('/at')) {
      this.#swap?.()
      this.#swap = undefined
    }
    return real
  }
}

function swapped({ work, outside }: { work: string; outside: string }): HostFiles {
  mkdirSync(join(outside, 'folder'))
  mkdirSync(join(work, 'at/folder'), { recursive: true })
  for (const path of ['at/file', 'mine']) writeFileSync(join(work, path), 'mine')
  const paths = new SwappedPaths(work, () => {
    renameSync(join(work, 'at'), join(work, 'gone'))
    symlinkSync(outside, join(work, 'at'))
  })
  return new HostFiles(paths, () => {})
}

const calls: Readonly<Record<string, (files: HostFiles) => Promise<unknown>>> = {
  read: files => files.read('at/file'),
  write: files => files.write('at/file', 'changed'),
  'write in a new folder': files => files.write('at/new/file', 'x'),
  stat: files => files.stat('at/file'),
  list: files => files.list('at'),
  mkdir: files => files.mkdir('at/new'),
  remove: files => files.remove('at/file'),
  'remove a folder': files => files.remove('at/folder', { recursive: true }),
  'rename from': files => files.rename('at/file', 'stolen'),
  'rename to': files => files.rename('mine', 'at/file'),
}

const testLinux = test.runIf(process.platform === 'linux')

for (const [name, call] of Object.entries(calls)) {
  testLinux(`a folder swapped for a link right before a call does not lead it out: ${name}`, async () => {
    using base = temporaryFolder()
    const folders = makeFolders(base.path)
    await expect(call(swapped(folders))).rejects.toMatchObject({ name: 'RathError' })
    expect(readdirSync(folders.outside).sort()).toEqual(['canary', 'file', 'folder'])
    expect(readFileSync(join(folders.outside, 'file'), 'utf8')).toBe(secret)
    expect(existsSync(join(folders.work, 'stolen'))).toBe(false)
  })
}

testLinux('a search finds nothing behind a link that took the place of its folder', async () => {
  using base = temporaryFolder()
  const files = swapped(makeFolders(base.path))
  expect((await files.search({ text: 'secret', path: 'at' })).matches).toEqual([])
})
