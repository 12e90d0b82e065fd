import { writeFileSync } from 'node:fs'
import { join } from 'node:path'

/**
 * Started by path.test.ts with a PATH whose first folder holds programs of an attacker: forks a folder by every method, merges text that both
 * sides changed, counts and removes leftovers. The source to import is an argument, so that a test of the test can name another one.
 */
const [source = '', folder = ''] = process.argv.slice(2)
const load = (path: string) => import(new URL(`${path}.ts`, `file://${source}/`).href)
const { mergeTrees } = await load('sandbox/workspace/merge')
const { ObjectStore } = await load('sandbox/workspace/objects')
const { Workspace } = await load('sandbox/workspace/workspace')
const { ForkedFolders, forkMethods } = await load('sandbox/workspace/fork/forked-folders')
const { findLeftovers, sizeOf } = await load('sandbox/workspace/fork/leftovers')

const objects = await ObjectStore.open(join(folder, 'objects'))
const workspace = await Workspace.open(join(folder, 'work'), objects, { keep: false })
const trees: string[] = []
for (const [first, last] of [
  ['1', '9'],
  ['ours', '9'],
  ['1', 'theirs'],
]) {
  writeFileSync(join(folder, 'work/text'), `${first}\n2\n3\n4\n${last}\n`)
  trees.push((await workspace.snapshot()).tree)
}
const [base, ours, theirs] = trees
const merged = await mergeTrees(objects, base, ours, [theirs])
for (const method of forkMethods) {
  const forks = await ForkedFolders.open(join(folder, 'branches'), { methods: [method] }).catch(
    () => undefined,
  )
  const fill = async (at: string) => writeFileSync(join(at, 'file'), 'x')
  const forked = await forks?.fork({ tree: base as string, fill })
  await forked?.close()
  await forks?.close()
}
await findLeftovers(join(folder, 'branches'))
await sizeOf(folder)
console.log(`merged: ${merged.conflicts.length === 0}`)
