import type { Digest } from '../base/digest.ts'
import { commonAncestor } from './ancestor.ts'
import { chunksFrom, foldAt, lengthOf } from './chain.ts'
import type { Chunk, FileChange } from './chunk.ts'
import { baseTree, packsOf } from './join-files.ts'
import type { SessionValue, Side } from './value.ts'

/** How two sessions differ since the last chunk they share. */
export interface SessionDiff {
  /** Id of that chunk; undefined when the sessions are unrelated. */
  readonly ancestor: Digest | undefined
  /** How many chunks they share. */
  readonly shared: number
  readonly ours: readonly Chunk[]
  readonly theirs: readonly Chunk[]
  /**
   * How the files of each side differ from those they began with; where the files cannot be read, what the side's tools say they
   * changed, the last change of each path.
   */
  readonly files: readonly ChangedFile[]
}

export type ChangedFile = FileChange & { readonly side: 'ours' | 'theirs' }

export async function diff(a: SessionValue, b: SessionValue): Promise<SessionDiff> {
  const base = commonAncestor(a.tip, b.tip)
  const sideOf = (value: SessionValue): Side => ({ value, chunks: chunksFrom(value.tip, lengthOf(base)) })
  const sides = [sideOf(a), sideOf(b)] as const
  const from = baseTree(base, sides)
  const port = a.files ?? b.files
  const packs = port ? packsOf(base, sides) : []
  const changes = port && ((start: Digest, end: Digest) => port.changes(start, end, packs))
  const files = await Promise.all([
    filesOf(sides[0], from, 'ours', changes),
    filesOf(sides[1], from, 'theirs', changes),
  ])
  return {
    ancestor: base?.id,
    shared: lengthOf(base),
    ours: sides[0].chunks,
    theirs: sides[1].chunks,
    files: files.flat(),
  }
}

async function filesOf(
  side: Side,
  from: Digest | undefined,
  name: ChangedFile['side'],
  changed: ((from: Digest, to: Digest) => Promise<readonly FileChange[]>) | undefined,
): Promise<ChangedFile[]> {
  const tree = foldAt(side.value.tip).tree
  const changes =
    changed && from !== undefined && tree !== undefined ? await changed(from, tree) : recorded(side.chunks)
  return changes.map(change => ({ ...change, side: name }))
}

function recorded(chunks: readonly Chunk[]): FileChange[] {
  const last = new Map<string, FileChange>()
  for (const chunk of chunks) {
    if (chunk.kind === 'tool-result') for (const file of chunk.files ?? []) last.set(file.path, file)
  }
  return [...last.values()]
}
