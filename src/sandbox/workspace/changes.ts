import type { Digest } from '../../base/digest.ts'
import type { FileChange } from '../../session/chunk.ts'
import { Breath } from './breath.ts'
import { compareTrees, type Difference } from './compare.ts'
import { emptyBlob } from './object.ts'
import type { ObjectStore } from './objects.ts'
import { patchOf } from './patch.ts'

export interface ChangesOptions {
  /** Characters of one patch; a longer one is cut at a line. Default 8,000; 0 for none. */
  readonly patch?: number
  /** Characters of all patches together; once they are used up, changes come without. Default 64,000. */
  readonly patches?: number
  /** Bytes of a file that is still compared line by line. Default 1 MB. */
  readonly file?: number
  readonly signal?: AbortSignal
}

/**
 * What became different from one tree to another, by path, as a session records it. A file that went and came back elsewhere with the same content is
 * renamed. Patches are of text only. Names that are not UTF-8 are shown with U+FFFD.
 */
export async function changesBetween(
  objects: ObjectStore,
  before: Digest,
  after: Digest,
  options: ChangesOptions = {},
): Promise<readonly FileChange[]> {
  const { patch = 8_000, patches = 64_000, file = 1024 * 1024 } = options
  const breath = new Breath(options.signal)
  const found: Difference[] = []
  for (const difference of compareTrees(objects, before, after)) {
    found.push(difference)
    if (breath.due) await breath.take()
  }
  const changes: FileChange[] = []
  let left = patches
  for (const { path, from, ...sides } of withRenames(found)) {
    if (breath.due) await breath.take()
    const text = patchOf(objects, from ?? path, path, sides, { characters: Math.min(patch, left), file })
    left -= text?.length ?? 0
    changes.push({
      path: path.toWellFormed(),
      change: changeOf(sides, from),
      ...(from !== undefined && { from: from.toWellFormed() }),
      ...(text !== undefined && { patch: text }),
    })
  }
  return changes
}

interface Renamed extends Difference {
  readonly from?: string
}

function withRenames(differences: readonly Difference[]): Renamed[] {
  const gone = new Map<Digest, Difference[]>()
  for (const difference of differences) {
    const { before, after } = difference
    if (before?.kind !== 'file' || after !== undefined || before.id === emptyBlob) continue
    gone.set(before.id, [...(gone.get(before.id) ?? []), difference])
  }
  const moved = new Set<Difference>()
  const renamed = differences.map((difference): Renamed => {
    const { before, after, path } = difference
    if (before !== undefined || after?.kind !== 'file') return difference
    const source = gone.get(after.id)?.shift()
    if (source?.before === undefined) return difference
    moved.add(source)
    return { path, from: source.path, before: source.before, after }
  })
  return renamed.filter(difference => !moved.has(difference))
}

function changeOf(
  { before, after }: Omit<Difference, 'path'>,
  from: string | undefined,
): FileChange['change'] {
  if (from !== undefined) return 'renamed'
  if (before === undefined) return 'added'
  return after === undefined ? 'deleted' : 'modified'
}
