import fc from 'fast-check'
import { expect, it } from 'vitest'
import { digestOf, sha256 } from '../../src/base/digest.ts'
import { canonicalJson } from '../../src/base/json.ts'
import { backwards, foldAt, previousOf } from '../../src/session/chain.ts'
import { Session } from '../../src/session/session.ts'
import { perceive } from '../../src/session/state.ts'
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

/** The same for states. */
function expectSpecifiedStates(session: Session): void {
  let state = digestOf({ perceived: null })
  let on = ''
  for (const chunk of session.chunks) {
    const branch = (chunk.branch ?? '').replaceAll(/(?<=^|\/)#\d+(\/|$)/g, '').replace(/\/$/, '')
    if (branch !== on) state = digestOf({ before: state, branch })
    on = branch
    const perceived = perceive(chunk, foldAt(chunk).turn, () => backwards(previousOf(chunk)))
    if (perceived !== undefined) state = digestOf({ before: state, perceived })
    expect(chunk.state).toBe(state)
  }
}

it('what is perceived of chunks is written in canonical order, whatever they hold', async () => {
  fc.assert(
    fc.property(anyChunks, chunks => expectSpecifiedStates(Session.create('empty').append(...chunks))),
    { numRuns: 300 },
  )
  await fc.assert(
    fc.asyncProperty(anySteps, async steps => {
      for (const session of await grow(steps)) expectSpecifiedStates(session)
    }),
    { numRuns: 150 },
  )
})

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
