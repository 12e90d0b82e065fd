import fc from 'fast-check'
import { expect, it } from 'vitest'
import { sha256 } from '../../src/base/digest.ts'
import { canonicalJson } from '../../src/base/json.ts'
import { Session } from '../../src/session/session.ts'
import { anyChunks } from './arbitrary.ts'
import { anySteps, grow } from './tree.ts'

/** The id as the specification has it, with the JSON writer that trusts nothing about the order of keys. */
function expectSpecifiedIds(session: Session): void {
  let previous: string | null = null
  for (const chunk of session.chunks) {
    expect(chunk.id).toBe(sha256(canonicalJson([previous, { ...chunk }])))
    previous = chunk.id
  }
}

it('chunks are kept in canonical order, whatever they hold and whatever they went through', async () => {
  fc.assert(
    fc.property(anyChunks, chunks =>
      expectSpecifiedIds(
        Session.create('empty')
          .fork('a/b')
          .append(...chunks),
      ),
    ),
    { numRuns: 150 },
  )
  await fc.assert(
    fc.asyncProperty(anySteps, async steps => {
      for (const session of await grow(steps)) expectSpecifiedIds(session)
    }),
    { numRuns: 150 },
  )
})
