import { type Digest, digestOfOrdered } from '../base/digest.ts'
import type { Json, JsonObject } from '../base/json.ts'
import { backwards, foldAt, previousOf } from './chain.ts'
import type { Chunk } from './chunk.ts'
import { nothing, perceive, replacedBy, type States } from './state.ts'
import type { SessionValue } from './value.ts'

/**
 * The state of a session by the first rule, for runs whose keys were made of it: it also covers the ordinals of forks without a label, the
 * backend, and the tree of the files.
 */
export function firstState({ tip, branch }: Pick<SessionValue, 'tip' | 'branch'>): Digest {
  return on(tip, branch)
}

const known = new WeakMap<Chunk, Digest>()

const firstStates: States = {
  isPerceived: chunk => perceiveFirst(chunk, undefined, () => []) !== undefined,
  of: stateOf,
}

/** A loop, because a chain can be a million long. */
function stateOf(tip: Chunk): Digest {
  const missing: Chunk[] = []
  for (let here: Chunk | undefined = tip; here && !known.has(here); here = previousOf(here))
    missing.push(here)
  for (const chunk of missing.reverse()) {
    const before = on(previousOf(chunk), chunk.branch ?? '')
    const perceived = perceiveFirst(chunk, foldAt(chunk).turn, () => backwards(previousOf(chunk)))
    known.set(chunk, perceived === undefined ? before : digestOfOrdered({ before, perceived }))
  }
  return known.get(tip) as Digest
}

function on(tip: Chunk | undefined, branch: string): Digest {
  const before = tip ? stateOf(tip) : nothing
  return (tip?.branch ?? '') === branch ? before : digestOfOrdered({ before, branch })
}

function perceiveFirst(
  chunk: Chunk,
  turn: Chunk<'assistant'> | undefined,
  earlier: () => Iterable<Chunk>,
): Json | undefined {
  switch (chunk.kind) {
    case 'tool-result':
      return { ...(perceive(chunk, turn, earlier) as JsonObject), tree: chunk.tree ?? null }
    case 'placement':
      return { backend: chunk.backend, kind: chunk.kind, tree: chunk.workspace?.tree ?? null }
    case 'merge':
      return chunk.tree ? { kind: chunk.kind, tree: chunk.tree } : undefined
    case 'compress':
      return { kind: chunk.kind, ...replacedBy(chunk, earlier(), firstStates), summary: chunk.summary }
    default:
      return perceive(chunk, turn, earlier)
  }
}
