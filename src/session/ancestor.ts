import { canonicalJson } from '../base/json.ts'
import { chunkAt, knownId, lengthOf, previousOf } from './chain.ts'
import type { Chunk } from './chunk.ts'

/**
 * The last chunk that two chains share, or undefined when they share none. Linear in what each chain has of its own:
 * shared history is recognised by being the same object or having the same known digest, and is never walked.
 */
export function commonAncestor(a: Chunk | undefined, b: Chunk | undefined): Chunk | undefined {
  const length = Math.min(lengthOf(a), lengthOf(b))
  if (a === undefined || b === undefined || length === 0) return undefined
  let left: Chunk | undefined = chunkAt(a, length - 1)
  let right: Chunk | undefined = chunkAt(b, length - 1)
  while (left && right && !surelySame(left, right)) {
    left = previousOf(left)
    right = previousOf(right)
  }
  return extendWhileEqual(left, a, b, length)
}

function surelySame(left: Chunk, right: Chunk): boolean {
  if (left === right) return true
  const id = knownId(left)
  return id !== undefined && id === knownId(right)
}

/** Chains built apart may still be equal: a chunk equals another when its content and everything before do. */
function extendWhileEqual(shared: Chunk | undefined, a: Chunk, b: Chunk, length: number): Chunk | undefined {
  let last = shared
  for (let i = lengthOf(shared); i < length; i++) {
    const left = chunkAt(a, i)
    if (!sameContent(left, chunkAt(b, i))) break
    last = left
  }
  return last
}

function sameContent(left: Chunk, right: Chunk): boolean {
  return (
    left.kind === right.kind &&
    left.at === right.at &&
    canonicalJson({ ...left }) === canonicalJson({ ...right })
  )
}
