import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { Session } from '../../src/session/session.ts'
import { anyChunk, anyLabel, anyObject } from './arbitrary.ts'
import { anySteps, grow } from './tree.ts'

function expectSame(read: Session, written: Session): void {
  expect(read.toJSONL()).toBe(written.toJSONL())
  expect([read.id, read.head, read.state, read.branch]).toEqual([
    written.id,
    written.head,
    written.state,
    written.branch,
  ])
  expect(read.lineage).toEqual(written.lineage)
  expect([...read.chunks]).toEqual([...written.chunks])
  expect(read.chunks.map(chunk => [chunk.id, chunk.state])).toEqual(
    written.chunks.map(chunk => [chunk.id, chunk.state]),
  )
  expect([read.usage, read.placement, read.text]).toEqual([written.usage, written.placement, written.text])
  expect(read.verify()).toEqual({ ok: true, checked: written.length })
}

describe('writing and reading back is identity', () => {
  it('for chunks of every kind with anything in them', () => {
    fc.assert(
      fc.property(fc.array(anyChunk, { maxLength: 8 }), anyLabel, anyObject, (chunks, label, extras) => {
        const session = Session.create('empty')
          .fork(label)
          .append(...chunks)
          .detach({ by: label, label, at: 5, extras })
        expectSame(Session.fromJSONL(session.toJSONL()), session)
      }),
      { numRuns: 200 },
    )
  })

  it('for every session of any tree, also when written as bytes', async () => {
    await fc.assert(
      fc.asyncProperty(anySteps, async steps => {
        for (const session of await grow(steps)) {
          const bytes = new TextEncoder().encode(session.toJSONL())
          expectSame(Session.fromJSONL(new TextDecoder().decode(bytes)), session)
        }
      }),
      { numRuns: 60 },
    )
  })
})
