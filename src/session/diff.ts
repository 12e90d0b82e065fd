import type { Digest } from '../base/digest.ts'
import { commonAncestor } from './ancestor.ts'
import { chunksFrom, lengthOf } from './chain.ts'
import type { Chunk, FileChange } from './chunk.ts'

/** How two sessions differ since the last chunk they share. */
export interface SessionDiff {
  /** Id of that chunk; undefined when the sessions are unrelated. */
  readonly ancestor: Digest | undefined
  /** How many chunks they share. */
  readonly shared: number
  readonly ours: readonly Chunk[]
  readonly theirs: readonly Chunk[]
  /** Files that either side's tools say they changed, the last change of each path. */
  readonly files: readonly (FileChange & { readonly side: 'ours' | 'theirs' })[]
}

export function diff(a: Chunk | undefined, b: Chunk | undefined): SessionDiff {
  const base = commonAncestor(a, b)
  const ours = chunksFrom(a, lengthOf(base))
  const theirs = chunksFrom(b, lengthOf(base))
  return {
    ancestor: base?.id,
    shared: lengthOf(base),
    ours,
    theirs,
    files: [...filesOf(ours, 'ours'), ...filesOf(theirs, 'theirs')],
  }
}

function* filesOf<S extends 'ours' | 'theirs'>(chunks: readonly Chunk[], side: S) {
  const last = new Map<string, FileChange>()
  for (const chunk of chunks) {
    if (chunk.kind === 'tool-result') for (const file of chunk.files ?? []) last.set(file.path, file)
  }
  for (const file of last.values()) yield { ...file, side }
}
