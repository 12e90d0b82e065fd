import type { Digest } from '../base/digest.ts'
import { compareTrees, entryAt } from '../sandbox/workspace/compare.ts'
import type { ObjectStore } from '../sandbox/workspace/objects.ts'
import { textOf } from '../sandbox/workspace/patch.ts'
import type { TreeEntry } from '../sandbox/workspace/tree.ts'

/** Half of the lines, as git has it. */
const alikeEnough = 0.5
const mostCandidates = 200
const largest = 1024 * 1024

/**
 * Where a file that is new in a tree came from: one that went in the same step, with the same content or at least half of its lines.
 * Undefined when it was written anew.
 */
export function renamedFrom(
  objects: ObjectStore,
  before: Digest,
  after: Digest,
  path: string,
): string | undefined {
  const now = entryAt(objects, after, path)
  if (now?.kind !== 'file') return undefined
  const gone: { readonly path: string; readonly entry: TreeEntry }[] = []
  for (const { path, before: entry, after: left } of compareTrees(objects, before, after)) {
    if (entry?.kind !== 'file' || left !== undefined) continue
    if (entry.id === now.id) return path
    if (gone.length < mostCandidates) gone.push({ path, entry })
  }
  const lines = linesOf(objects, now)
  if (lines === undefined) return undefined
  const rated = gone.map(({ path, entry }) => ({ path, share: likeness(lines, linesOf(objects, entry)) }))
  const best = rated.reduce((one, other) => (other.share > one.share ? other : one), { path: '', share: 0 })
  return best.share >= alikeEnough ? best.path : undefined
}

function linesOf(objects: ObjectStore, entry: TreeEntry): readonly string[] | undefined {
  return textOf(objects, entry, largest)
    ?.split('\n')
    .filter(line => line.trim() !== '')
}

/** The share of the longer text that is in both, line by line, whatever their order. */
function likeness(one: readonly string[], other: readonly string[] | undefined): number {
  if (other === undefined || one.length === 0 || other.length === 0) return 0
  const counts = new Map<string, number>()
  for (const line of one) counts.set(line, (counts.get(line) ?? 0) + 1)
  let shared = 0
  for (const line of other) {
    const left = counts.get(line) ?? 0
    if (left === 0) continue
    counts.set(line, left - 1)
    shared++
  }
  return shared / Math.max(one.length, other.length)
}
