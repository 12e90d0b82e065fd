import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { joinFiles } from '../../src/run/place/join.ts'
import { Place } from '../../src/run/place/place.ts'
import { FolderLock } from '../../src/run/place/place-files.ts'
import { Workspaces } from '../../src/run/place/workspaces.ts'
import type { Sandbox } from '../../src/sandbox/spec.ts'
import { temporaryFolder } from '../sandbox/make.ts'

it("a merge that was cut off half-way begins again with the files that it had found, a person's edits among them", async () => {
  using folder = temporaryFolder()
  const project = join(folder.path, 'project')
  const kept = () => new Workspaces(join(folder.path, 'kept'))
  mkdirSync(project)
  writeFileSync(join(project, 'log.txt'), 'begun\n')

  const first = kept()
  const treeOf = async (path: string) => (await first.filesIn(path)).look()
  const base = await treeOf(project)
  const side = async (name: string) => {
    const copy = join(folder.path, name)
    cpSync(project, copy, { recursive: true })
    mkdirSync(join(copy, name))
    writeFileSync(join(copy, name, 'deep.txt'), name)
    return { tree: await treeOf(copy), branch: name, lane: name }
  }
  const sides = [await side('left'), await side('right')]
  writeFileSync(join(project, 'person.txt'), 'mine')
  const found = await treeOf(project)
  await first.close()
  // As it is in the middle of a restore: a folder is made that nobody else may look into, and filled afterwards; a file has no name yet.
  {
    using lock = await FolderLock.take(project, join(folder.path, 'kept'))
    lock.begin({ from: found, to: (sides[0] as { tree: string }).tree })
  }
  mkdirSync(join(project, 'left'), { mode: 0o700 })
  writeFileSync(join(project, 'left', '.openrath-0198c2d1-1111-7222-8333-444455556666.tmp'), 'le')

  const second = kept()
  const place = new Place({} as Sandbox, await second.filesIn(project))
  const onConflict = 'refuse'
  const request = { base, found: undefined, sides, into: '', placed: undefined, onConflict } as const
  await joinFiles(request, second, place)
  await second.close()
  for (const name of ['left', 'right']) {
    expect(readFileSync(join(project, name, 'deep.txt'), 'utf8')).toBe(name)
    expect(readdirSync(join(project, name))).toEqual(['deep.txt'])
  }
  expect(existsSync(join(project, 'person.txt'))).toBe(true)
})
