import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { Session } from '../../src/session/session.ts'
import { anyChunk, anyJson } from './arbitrary.ts'
import { calls, refusal, says, user } from './make.ts'
import { anySteps, grow } from './tree.ts'

describe('a session', () => {
  it('is not changed by changing what was appended', () => {
    fc.assert(
      fc.property(anyChunk, chunk => {
        const input = structuredClone(chunk)
        const session = Session.create('empty').append(input)
        const before = session.toJSONL()
        spoil(input)
        expect(session.toJSONL()).toBe(before)
        expect(session.verify().ok).toBe(true)
      }),
    )
  })

  it('is not changed by changing bytes that were appended', () => {
    const data = new Uint8Array([1, 2, 3])
    const session = Session.fromUserMessage([{ type: 'image', mediaType: 'image/png', data }])
    data.fill(0)
    expect(session.chunks.at(0)).toMatchObject({ content: [{ data: 'AQID' }] })
  })

  it('is frozen as far as anyone can reach', () => {
    fc.assert(
      fc.property(anyChunk, anyJson, (chunk, value) => {
        const session = Session.create('empty', undefined, { extras: { value } })
          .append(chunk)
          .to('local', { value })
        expectFrozen(session)
        expectFrozen(session.chunks)
        for (const each of session.chunks) expectFrozen(each)
        for (const reached of [session.lineage, session.placement, session.usage, session.pending])
          expectFrozen(reached)
        for (const each of Session.fromJSONL(session.toJSONL()).chunks) expectFrozen(each)
        expectFrozen(Session.fromJSONL(session.toJSONL()).lineage)
      }),
    )
  })

  it('refuses assignment with an error, in every place', () => {
    const session = Session.fromUserMessage('hi')
      .append(says('yes', { inputTokens: 1 }))
      .to('local', './')
    const chunk = session.chunks.at(0) as never as Record<string, unknown>
    const tries = [
      () => Object.assign(session, { id: 'other' }),
      () => Object.assign(session, { extra: 1 }),
      () => Object.assign(session.lineage, { by: 'me' }),
      () => Object.assign(session.lineage.parents, ['me']),
      () => Object.assign(session.usage, { inputTokens: 0 }),
      () => Object.assign(session.placement as object, { backend: 'x' }),
      () => Object.assign(chunk, { id: 'x' }),
      () => Object.assign(chunk, { at: 0 }),
      () => (chunk.content as unknown[]).push(1),
      () => delete chunk.kind,
    ]
    for (const attempt of tries) expect(attempt).toThrow(TypeError)
    expect(session.verify().ok).toBe(true)
  })

  it('gives out lists that are the caller’s own', () => {
    const session = Session.fromUserMessage('hi').append(calls('c1'))
    session.chunks.slice().pop()
    session.messages().length = 0
    expect([session.length, session.messages().length]).toEqual([2, 3])
  })

  it('cannot be made with new', () => {
    const Made = Session as unknown as new (...args: unknown[]) => Session
    expect(refusal(() => new Made()).message).toContain('Session.fromUserMessage')
    expect(refusal(() => new Made({ id: 'x', tip: undefined, branch: '', lineage: {} })).code).toBe(
      'invalid-argument',
    )
  })

  it('stays what it was, whatever is made from it afterwards', async () => {
    const picture = (session: Session) => [session.head, session.state, session.length, session.toJSONL()]
    await fc.assert(
      fc.asyncProperty(anySteps, anySteps, async (first, more) => {
        const early = await grow(first)
        const before = early.map(picture)
        const roots = early.map(session => session.append(user('next')))
        for (const next of more) {
          const on = early[next.on % early.length] as Session
          if (next.do === 'append') on.append(...next.chunks)
          else if (next.do === 'merge') await on.merge(roots, { policy: next.policy })
          else on.fork().append(user('elsewhere'))
        }
        expect(early.map(picture)).toEqual(before)
      }),
      { numRuns: 40 },
    )
  })
})

function expectFrozen(value: unknown): void {
  if (typeof value !== 'object' || value === null) return
  expect(Object.isFrozen(value)).toBe(true)
  if (value instanceof Session) return
  for (const key of Object.keys(value)) expectFrozen((value as Record<string, unknown>)[key])
}

/** Changes everything in a value that can be changed. */
function spoil(value: unknown): void {
  if (value instanceof Uint8Array) {
    value.fill(9)
    return
  }
  if (typeof value !== 'object' || value === null) return
  const holder = value as Record<string, unknown>
  for (const key of Object.keys(holder)) {
    spoil(holder[key])
    Object.defineProperty(holder, key, { value: 'spoiled' })
  }
  if (Array.isArray(value)) value.push('spoiled')
  else holder.spoiled = true
}
