import fc from 'fast-check'
import { expect, test } from 'vitest'
import { ObjectBatch } from '../../../src/sandbox/workspace/batch.ts'
import { mergeTrees } from '../../../src/sandbox/workspace/merge.ts'
import type { ObjectStore } from '../../../src/sandbox/workspace/objects.ts'
import { type TreeEntry, writeTree } from '../../../src/sandbox/workspace/tree.ts'
import { lab } from './make.ts'

/** A folder, or a file of a few lines with a mode. */
type Shape = { readonly [name: string]: Shape } | readonly [content: string, mode: number]

const file = fc.tuple(
  fc
    .array(fc.constantFrom('1\n', '2\n', '3\n', '4\n'), { minLength: 1, maxLength: 5 })
    .map(lines => lines.join('')),
  fc.constantFrom(0o644, 0o755, 0o600),
)
const names = fc.constantFrom('a', 'b', 'c')
const folder: fc.Arbitrary<Shape> = fc.letrec<{ folder: Shape; entry: Shape }>(tie => ({
  entry: fc.oneof(
    { maxDepth: 2, depthIdentifier: 'tree' },
    { weight: 3, arbitrary: file },
    { weight: 2, arbitrary: tie('folder') },
  ),
  folder: fc.dictionary(names, tie('entry'), { maxKeys: 3, depthIdentifier: 'tree' }),
})).folder

function treeOf(objects: ObjectStore, shape: Shape): string {
  const batch = new ObjectBatch(objects)
  const entryOf = (shape: Shape): TreeEntry => {
    if (Array.isArray(shape))
      return { kind: 'file', id: batch.put('blob', Buffer.from(shape[0])), mode: shape[1] }
    const entries = Object.entries(shape).map(([name, below]) => [name, entryOf(below as Shape)] as const)
    return { kind: 'folder', id: writeTree(entries, batch), mode: 0o755 }
  }
  const { id } = entryOf(shape)
  batch.finish()
  return id
}

test('merging with a side that changed nothing, or the same, gives the other side', async () => {
  using place = await lab()
  await fc.assert(
    fc.asyncProperty(folder, folder, async (first, second) => {
      const [base, side] = [treeOf(place.objects, first), treeOf(place.objects, second)]
      for (const [ours, theirs] of [
        [base, side],
        [side, base],
        [side, side],
      ] as const) {
        expect(await mergeTrees(place.objects, base, ours, [theirs])).toMatchObject({
          tree: side,
          conflicts: [],
        })
      }
    }),
    { numRuns: 100 },
  )
})

test('a merge is the same from both sides, up to who settles it', async () => {
  using place = await lab()
  const { objects } = place
  await fc.assert(
    fc.asyncProperty(folder, folder, folder, async (first, second, third) => {
      const [base, one, two] = [treeOf(objects, first), treeOf(objects, second), treeOf(objects, third)]
      const there = await mergeTrees(objects, base, one, [two])
      const back = await mergeTrees(objects, base, two, [one])
      expect(back.tree).toBe(there.tree)
      const seen = (merged: typeof there) =>
        merged.conflicts.map(({ path, kind }) => `${kind} ${path}`).sort()
      expect(seen(back)).toEqual(seen(there))
      const byOurs = await mergeTrees(objects, base, one, [two], { settle: 'ours' })
      const byTheirs = await mergeTrees(objects, base, two, [one], { settle: 'theirs' })
      expect(byTheirs.tree).toBe(byOurs.tree)
      // Merging what was merged again changes nothing.
      const again = await mergeTrees(objects, two, byTheirs.tree as string, [two])
      expect(again.tree).toBe(byTheirs.tree)
    }),
    { numRuns: 40 },
  )
  expect(place.fsck()).toEqual([])
})
