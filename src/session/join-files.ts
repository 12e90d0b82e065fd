import type { Digest } from '../base/digest.ts'
import { RathError } from '../base/errors.ts'
import type { JsonObject } from '../base/json.ts'
import { foldAt } from './chain.ts'
import type { Chunk } from './chunk.ts'
import type { JoinedFiles, OnConflict } from './files.ts'
import { packsNamed } from './fold.ts'
import { type Lane, rootLane } from './lane.ts'
import type { Side } from './value.ts'

/** What a merge records of the files: the joined tree, and what had to be settled. Nothing when no side has any. */
export async function joinFiles(
  base: Chunk | undefined,
  sides: readonly Side[],
  into: Lane,
  onConflict: OnConflict,
): Promise<Partial<Pick<JoinedFiles, 'tree' | 'conflicts'>> & { readonly extras?: JsonObject }> {
  const shared = foldAt(base).tree
  const found = shared ?? firstFound(sides)
  const known = sides.flatMap(({ value }) => {
    const tree = foldAt(value.tip).tree
    return tree === undefined ? [] : [{ tree, branch: value.branch, lane: value.lineage.lane ?? rootLane }]
  })
  if (known.length === 0) return {}
  const files = sides.map(({ value }) => value.files).find(port => port !== undefined)
  if (files === undefined) return { tree: treeWithoutFiles(shared ?? found, known) }
  const placed = sides.map(({ value }) => foldAt(value.tip).placement).find(chunk => chunk !== undefined)
  const worked = sides.map(({ value }) => foldAt(value.tip).folder).find(folder => folder !== undefined)
  const { tree, conflicts, packs } = await files.join({
    base: shared,
    found,
    sides: known,
    packs: packsOf(base, sides),
    into,
    placed,
    worked,
    onConflict,
  })
  return {
    tree,
    ...(conflicts.length > 0 && { conflicts }),
    ...(packs && packs.length > 0 && { extras: { packs } }),
  }
}

/** Those of the shared history, of what the sides found first, and of the sides. */
export function packsOf(base: Chunk | undefined, sides: readonly Side[]): Digest[] {
  const first = sides.flatMap(
    ({ chunks }) => chunks.find(chunk => chunk.kind === 'tool-result' && chunk.before) ?? [],
  )
  const named = [
    foldAt(base).packs,
    ...first.map(packsNamed),
    ...sides.map(({ value }) => foldAt(value.tip).packs),
  ]
  return [...new Set(named.flat())]
}

/** The files that the sides began with: those of the shared history, or what the first call on a side found. */
export function baseTree(base: Chunk | undefined, sides: readonly Side[]): Digest | undefined {
  return foldAt(base).tree ?? firstFound(sides)
}

/** A fork finds what was there when it was forked; at the root others may have worked meanwhile. */
function firstFound(sides: readonly Side[]): Digest | undefined {
  const depth = ({ value }: Side) => value.lineage.lane?.length ?? 0
  for (const { chunks } of sides.toSorted((a, b) => depth(b) - depth(a))) {
    for (const chunk of chunks) if (chunk.kind === 'tool-result' && chunk.before) return chunk.before
  }
  return undefined
}

/** Where no files can be read, only sides that do not differ fit together, or differ from the base on one side alone. */
function treeWithoutFiles(base: Digest | undefined, sides: readonly { readonly tree: Digest }[]): Digest {
  const changed = new Set(sides.map(side => side.tree))
  if (changed.size > 1 && base !== undefined) changed.delete(base)
  const [tree, ...others] = changed
  if (tree !== undefined && others.length === 0) return tree
  throw new RathError(
    'merge-conflict',
    "These sessions changed their files differently, and went through no runtime that could read them. Get them from one, with runtime.sessions.get(id), or merge with policy 'ours' or 'theirs'.",
  )
}
