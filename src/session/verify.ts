import type { Digest } from '../base/digest.ts'
import { chunksFrom } from './chain.ts'
import type { Chunk, ChunkBody } from './chunk.ts'
import { identify } from './identity.ts'

/** Whether a record is what its digests say. `problem` names the first thing that is not. */
export interface Verification {
  readonly ok: boolean
  /** Chunks whose digests were recomputed. */
  readonly checked: number
  readonly problem?: VerificationProblem
}

export interface VerificationProblem {
  readonly reason: string
  /** The chunk it was found at; absent when it is about the record around the chunks. */
  readonly index?: number
  readonly id?: Digest
}

/** Recomputes every id from the content, in order. `damage` is what reading the record already found. */
export function verify(tip: Chunk | undefined, damage?: VerificationProblem): Verification {
  let previous: Digest | undefined
  const chunks = chunksFrom(tip, 0)
  for (const chunk of chunks) {
    const expected = identify({ ...chunk } as ChunkBody, previous)
    if (expected !== chunk.id) {
      const reason = `chunk ${chunk.index} (${chunk.kind}) is recorded as ${chunk.id} and its content gives ${expected}`
      return { ok: false, checked: chunk.index, problem: { reason, index: chunk.index, id: chunk.id } }
    }
    previous = chunk.id
  }
  if (damage) return { ok: false, checked: chunks.length, problem: damage }
  return { ok: true, checked: chunks.length }
}
