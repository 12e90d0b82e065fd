import type { Digest } from '../../base/digest.ts'
import { RathError, show } from '../../base/errors.ts'
import type { Conflict, Settle, Settlement as TreeSettlement } from '../../sandbox/workspace/conflict.ts'
import { mergeTrees } from '../../sandbox/workspace/merge.ts'
import type { ObjectStore } from '../../sandbox/workspace/objects.ts'
import type { MergeConflict } from '../../session/chunk.ts'
import type { FileConflict, JoinedFiles, JoinRequest, OnConflict, Settlement } from '../../session/files.ts'
import { filesLane } from '../../session/lane.ts'
import { HoldingCall } from './hold.ts'
import type { Place } from './place.ts'
import type { AloneFiles, PlaceFiles } from './place-files.ts'
import type { Workspaces } from './workspaces.ts'

/**
 * Merges the files of branches and brings the result to a place. What the place holds by now counts too: a person may have edited there, or
 * another session or process worked there. When they do not fit together, nothing is written.
 */
export async function joinFiles(
  request: JoinRequest,
  workspaces: Workspaces,
  place: Place | undefined,
): Promise<JoinedFiles> {
  const objects = await workspaces.objects
  if (place?.files === undefined)
    return joinTrees(
      request,
      request.sides.map(side => side.tree),
      objects,
    )
  const holder = new HoldingCall()
  await holder.take(place.hold)
  try {
    return await joinInto(place.files, request, objects)
  } finally {
    holder.release()
  }
}

/** As often as the folder may change under a merge before it gives up. */
const mostAttempts = 50

/**
 * Merges with what is there and writes the result while no other process takes files back. When that turns out to be something else by the time of
 * writing, because somebody edits there, it is merged again: nothing that was not merged is written over.
 */
async function joinInto(files: PlaceFiles, request: JoinRequest, objects: ObjectStore): Promise<JoinedFiles> {
  const keep = files.loadedCode()
  let merged: { readonly joined: JoinedFiles; readonly now: Digest } | undefined
  const merge = async (now: Digest) => ({
    now,
    joined: await joinTrees(request, withCurrent(request, now), objects, keep),
  })
  for (let attempt = 0; attempt < mostAttempts; attempt++) {
    const now = await files.alone(async alone => {
      const found = await alone.look()
      // Whoever settles conflicts may take long, and ask agents that work here: others do not wait for them.
      if (merged?.now !== found && typeof request.onConflict === 'function') return found
      if (merged?.now !== found) merged = await merge(found)
      return (await isWritten(alone, merged)) ? undefined : found
    })
    if (now === undefined) return (merged as NonNullable<typeof merged>).joined
    merged = typeof request.onConflict === 'function' ? await merge(now) : undefined
  }
  throw new RathError(
    'merge-conflict',
    `The folder was changed by somebody else ${mostAttempts} times while the branches were being merged into it. Nothing of theirs was lost, and nothing was merged. Try again when it is quiet.`,
  )
}

/** False when something is there by now that was not merged. */
async function isWritten(
  files: AloneFiles,
  { joined, now }: { readonly joined: JoinedFiles; readonly now: Digest },
): Promise<boolean> {
  if (joined.tree === now) return true
  const { before, tree, notRestored } = await files.restore(joined.tree, now)
  if (tree === joined.tree) return true
  if (before !== now || notRestored.some(({ why }) => why === 'changed')) return false
  const failed = notRestored.filter(({ why }) => why === 'failed')
  if (failed.length === 0) return true
  const paths = failed.slice(0, 20).map(({ path, message }) => `  ${path}: ${message}`)
  throw new RathError(
    'merge-conflict',
    `Not all of the merged files could be written (tree ${joined.tree}):\n${paths.join('\n')}\nSee to it that they can be, and merge again.`,
    { data: { paths: failed.map(({ path }) => path) } },
  )
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
  keep: readonly string[] = [],
): Promise<JoinedFiles> {
  const { base, onConflict } = request
  const [ours, ...theirs] = [...new Set(trees)] as [Digest, ...Digest[]]
  const deciders = new Map<string, string>()
  const settle = settleWith(onConflict, objects, deciders)
  const options = { settle, keep }
  const { tree, conflicts, settled, kept, keptGit } = await mergeTrees(
    objects,
    base ?? ours,
    ours,
    theirs,
    options,
  )
  if (tree === undefined) throw refused(conflicts)
  const taken =
    (kind: string) =>
    (path: string): MergeConflict => ({ path, kind, settled: 'ours' })
  return {
    tree,
    conflicts: [
      ...settled.map(({ path, kind, settled }): MergeConflict => {
        const by = deciders.get(path)
        return { path, kind, settled: words[settled] ?? settled, ...(by !== undefined && { by }) }
      }),
      // What a merge never takes from a branch is on the record too.
      ...keptGit.map(taken('git')),
      ...kept.map(taken('loaded-code')),
    ],
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
