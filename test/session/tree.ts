import fc, { type Arbitrary } from 'fast-check'
import type { ChunkInput } from '../../src/session/chunk.ts'
import { Session, withFiles } from '../../src/session/session.ts'
import { anyLabel, chunkOf } from './arbitrary.ts'
import { joinAnyFiles } from './make.ts'

/** Chunks of a conversation with tools: few call ids, so that calls are answered, repeated and left open by chance. */
const conversation: Arbitrary<ChunkInput> = fc.oneof(
  chunkOf('system'),
  chunkOf('user'),
  chunkOf('assistant'),
  chunkOf('tool-result'),
  chunkOf('memory'),
  chunkOf('note'),
)

export type Step =
  | { do: 'append'; on: number; chunks: readonly ChunkInput[] }
  | { do: 'fork'; on: number; label: string | undefined }
  | { do: 'rewind'; on: number; to: number }
  | { do: 'compress'; on: number; from: number; count: number }
  | { do: 'merge'; on: number; others: readonly number[]; policy: 'concat' | 'ours' | 'theirs' }

const pick = fc.nat(1000)
const step: Arbitrary<Step> = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constant('append' as const),
      on: pick,
      chunks: fc.array(conversation, { maxLength: 4 }),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constant('fork' as const),
      on: pick,
      label: fc.option(anyLabel, { nil: undefined }),
    }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('rewind' as const), on: pick, to: pick }) },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant('compress' as const),
      on: pick,
      from: pick,
      count: fc.integer({ min: 1, max: 4 }),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constant('merge' as const),
      on: pick,
      others: fc.array(pick, { minLength: 1, maxLength: 3 }),
      policy: fc.constantFrom('concat' as const, 'concat' as const, 'ours' as const, 'theirs' as const),
    }),
  },
)
export const anySteps = fc.array(step, { maxLength: 14 })

/** Every session that the steps make, the first an empty one; numbers pick among what there is. */
export async function grow(steps: readonly Step[]): Promise<Session[]> {
  const sessions = [withFiles(Session.create('empty', undefined, { at: 1 }), joinAnyFiles)]
  const at = (n: number) => sessions[n % sessions.length] as Session
  for (const next of steps) sessions.push(await take(next, at(next.on), at))
  return sessions
}

async function take(next: Step, on: Session, at: (n: number) => Session): Promise<Session> {
  switch (next.do) {
    case 'append':
      return on.append(...next.chunks)
    case 'fork':
      return on.fork(next.label === undefined ? { at: 2 } : { label: next.label, at: 2 })
    case 'rewind':
      return on.length === 0 ? on : on.rewind(next.to % on.length, { at: 2 })
    case 'compress': {
      if (on.length === 0) return on
      const start = next.from % on.length
      const replaced = on.chunks.slice(start, start + next.count).map(chunk => chunk.id)
      return on.append({ kind: 'compress', replaced, summary: `summary of ${replaced.length}`, at: 3 })
    }
    case 'merge':
      return on.merge(next.others.map(at), { policy: next.policy, at: 4 })
  }
}
