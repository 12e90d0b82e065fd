import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { toReplace } from '../../src/run/compress.ts'
import type { Message } from '../../src/session/message.ts'
import { Session } from '../../src/session/session.ts'
import { calls, note, result, says, user } from '../session/make.ts'
import { anySteps, grow } from '../session/tree.ts'
import { expectValidForEveryProvider } from '../session/valid-messages.ts'

const compressed = (session: Session, keep: number | { tokens: number }) => {
  const replaced = toReplace(session, keep)
  if (replaced.length === 0) return undefined
  return session.append({ kind: 'compress', replaced: replaced.map(chunk => chunk.id), summary: 'in short' })
}

/** A conversation dense with tools: few call ids, so that calls are answered, answered late, and left open. */
const anyId = fc.constantFrom('c1', 'c2', 'c3')
const anyTalk = fc.array(
  fc.oneof(
    fc.constant(user('a question')),
    fc.constant(says('an answer')),
    fc.constant(note('n')),
    fc.uniqueArray(anyId, { minLength: 1 }).map(ids => calls(...ids)),
    { weight: 4, arbitrary: anyId.map(id => result(id)) },
  ),
  { maxLength: 14 },
)

/** Results, without the ids that a view may have to make unique. */
const results = (messages: readonly Message[]) =>
  messages.flatMap(message => (message.role === 'tool' ? [JSON.stringify(message.outcome)] : []))

describe('compressing', () => {
  it('leaves the end of the view as it was, no call without its result and no result without its call', async () => {
    const anyKeep = fc.oneof(fc.nat(6), fc.record({ tokens: fc.nat(60) }))
    await fc.assert(
      fc.asyncProperty(anySteps, anyTalk, anyKeep, async (steps, talk, keep) => {
        for (const session of [...(await grow(steps)), Session.create('empty').append(...talk)]) {
          const short = compressed(session, keep)
          if (short === undefined) continue
          const before = session.messages()
          const after = short.messages()
          expectValidForEveryProvider(after)
          expect(short.pending).toEqual(session.pending)
          const rest = after.filter(message => message.role !== 'system').slice(1)
          const tail = before.slice(before.length - rest.length)
          expect(rest.map(message => message.role)).toEqual(tail.map(message => message.role))
          expect(results(rest)).toEqual(results(tail))
        }
      }),
      { numRuns: 500 },
    )
  })
})
