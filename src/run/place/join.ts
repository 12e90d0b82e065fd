import type { Digest } from '../../base/digest.ts'
import { RathError, show } from '../../base/errors.ts'
import type { Conflict, Settle, Settlement as TreeSettlement } from '../../sandbox/workspace/conflict.ts'
import { mergeTrees } from '../../sandbox/workspace/merge.ts'
import type { ObjectStore } from '../../sandbox/workspace/objects.ts'
import type { MergeConflict } from '../../session/chunk.ts'
import type { FileConflict, JoinedFiles, JoinRequest, OnConflict, Settlement } from '../../session/files.ts'
import { filesLane } from '../../session/lane.ts'
import { Holder } from './hold.ts'
import type { Place } from './place.ts'
import type { PlaceFiles } from './place-files.ts'
import type { Workspaces } from './workspaces.ts'

/**
 * Merges the files of branches and brings the result to a place. What the place holds by now counts too: a person may have edited there, or
 * another session worked there. When they do not fit together, nothing is written. `isAgain`: it was begun before, and cut off.
 */
export async function joinFiles(
  request: JoinRequest,
  workspaces: Workspaces,
  place: Place | undefined,
  isAgain = false,
): Promise<JoinedFiles> {
  const objects = await workspaces.objects
  if (place?.files === undefined)
    return joinTrees(
      request,
      request.sides.map(side => side.tree),
      objects,
    )
  const holder = new Holder()
  await holder.take(place.hold)
  try {
    const now = await filesNow(place.files, isAgain)
    const joined = await joinTrees(request, withCurrent(request, now), objects)
    if (joined.tree !== now) await place.files.restore(joined.tree)
    return joined
  } finally {
    holder.release()
  }
}

/** What is there. A merge that was cut off may have written half of its result: then what was last seen before it, brought back. */
async function filesNow(files: PlaceFiles, isAgain: boolean): Promise<Digest> {
  const { seen } = files
  const now = await files.look()
  if (!isAgain || seen === undefined || seen === now) return now
  await files.restore(seen)
  return seen
}

/** The side that worked in the place is what is there now; without one, what is there is a side of its own when it has changed. */
function withCurrent({ sides, into, base }: JoinRequest, now: Digest): Digest[] {
  const worksThere = ({ lane }: JoinRequest['sides'][number]) => filesLane(lane) === filesLane(into)
  const trees = sides.map(side => (worksThere(side) ? now : side.tree))
  return sides.some(worksThere) || now === base ? trees : [now, ...trees]
}

async function joinTrees(
  request: JoinRequest,
  trees: readonly Digest[],
  objects: ObjectStore,
): Promise<JoinedFiles> {
  const { base, onConflict } = request
  const [ours, ...theirs] = [...new Set(trees)] as [Digest, ...Digest[]]
  const deciders = new Map<string, string>()
  const settle = settleWith(onConflict, objects, deciders)
  const { tree, conflicts, settled } = await mergeTrees(objects, base ?? ours, ours, theirs, { settle })
  if (tree === undefined) throw refused(conflicts)
  return {
    tree,
    conflicts: settled.map(({ path, kind, settled }): MergeConflict => {
      const by = deciders.get(path)
      return { path, kind, settled: words[settled] ?? settled, ...(by !== undefined && { by }) }
    }),
  }
}

const words: Readonly<Record<string, string>> = { content: 'written', delete: 'deleted' }

function settleWith(onConflict: OnConflict, objects: ObjectStore, deciders: Map<string, string>): Settle {
  if (typeof onConflict !== 'function') return onConflict
  return async conflict => {
    const settlement = await onConflict(asShown(conflict, objects))
    if (typeof settlement === 'object' && settlement !== null && settlement.by)
      deciders.set(conflict.path, settlement.by)
    return asTreeSettlement(settlement, conflict.path)
  }
}

function asShown({ path, kind, base, ours, theirs }: Conflict, objects: ObjectStore): FileConflict {
  // A side that is a folder here has no bytes to show.
  const bytes = (id: Digest | undefined) =>
    id === undefined || kind === 'type' || kind === 'not-kept' ? null : objects.read(id)
  return { path, kind, base: bytes(base), ours: bytes(ours), theirs: bytes(theirs) }
}

function asTreeSettlement(settlement: Settlement, path: string): TreeSettlement {
  if (settlement === 'ours' || settlement === 'theirs' || settlement === 'markers') return settlement
  if (typeof settlement === 'object' && settlement !== null) {
    if ('take' in settlement) return asTreeSettlement(settlement.take, path)
    const { content } = settlement
    if (content === null) return 'delete'
    if (typeof content === 'string' || content instanceof Uint8Array) return { content }
  }
  throw new RathError(
    'invalid-argument',
    `onConflict settles ${show(path)} with 'ours', 'theirs', 'markers' or { content }, not ${show(settlement)}.`,
  )
}

function refused(conflicts: readonly Conflict[]): RathError {
  const paths = conflicts.map(({ path, kind }) => `  ${path} (${kind})`)
  const shown = paths.length > 20 ? [...paths.slice(0, 20), `  … and ${paths.length - 20} more`] : paths
  return new RathError(
    'merge-conflict',
    `The branches changed these files differently, and nothing was merged:\n${shown.join('\n')}\n` +
      "Merge with onConflict: 'ours', 'theirs', 'markers' or a function that settles each.",
    { data: { conflicts: conflicts.map(({ path, kind }) => ({ path, kind })) } },
  )
}
