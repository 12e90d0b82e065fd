import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { canonicalJson } from '../../src/base/json.ts'
import type { Chunk } from '../../src/session/chunk.ts'
import { identityOf } from '../../src/session/identity.ts'
import type { Session } from '../../src/session/session.ts'
import { anySteps, grow } from './tree.ts'

/** Any sessions of one random tree, which share some history or none. */
const picks = fc.tuple(fc.nat(), fc.nat(), fc.nat())

/** What a chunk says, without where it hangs. */
function content(chunk: Chunk): string {
  const { origin: _, ...body } = chunk
  return canonicalJson({ ...body })
}
const contents = (session: Session) => session.chunks.filter(chunk => chunk.kind !== 'merge').map(content)
const identities = (session: Session) => session.chunks.map(identityOf)

function check(run: (a: Session, b: Session, c: Session) => Promise<void>): Promise<void> {
  return fc.assert(
    fc.asyncProperty(anySteps, picks, async (steps, [i, j, k]) => {
      const sessions = await grow(steps)
      const at = (n: number) => sessions[n % sessions.length] as Session
      await run(at(i), at(j), at(k))
    }),
    { numRuns: 120 },
  )
}

describe('merging any sessions of any tree', () => {
  it('is associative in content', () =>
    check(async (a, b, c) => {
      const left = contents(await (await a.merge(b)).merge(c))
      expect(contents(await a.merge(await b.merge(c)))).toEqual(left)
      expect(contents(await a.merge([b, c]))).toEqual(left)
    }))

  it('keeps every chunk of every side, once', () =>
    check(async (a, b, c) => {
      const merged = await a.merge([b, c])
      const kept = identities(merged)
      expect(new Set(kept).size).toBe(kept.length)
      const expected = new Set([a, b, c].flatMap(identities))
      expect(new Set(kept.slice(0, -1))).toEqual(expected)
      expect(merged.verify().ok).toBe(true)
    }))

  it('keeps the order inside each branch', () =>
    check(async (a, b) => {
      const place = new Map(identities(await a.merge(b)).map((identity, i) => [identity, i]))
      expect(identities(a)).toEqual(
        identities(a).toSorted((x, y) => (place.get(x) ?? 0) - (place.get(y) ?? 0)),
      )
      const own = identities(b).filter(identity => !identities(a).includes(identity))
      expect(own).toEqual(own.toSorted((x, y) => (place.get(x) ?? 0) - (place.get(y) ?? 0)))
    }))

  it('changes nothing but the record when it is done again', () =>
    check(async (a, b) => {
      const once = await a.merge(b)
      expect(contents(await once.merge(b))).toEqual(contents(once))
      expect(contents(await once.merge([a, b, once]))).toEqual(contents(once))
    }))

  it('finds the same ancestor from either side as comparing chunk by chunk does', () =>
    check(async (a, b) => {
      const [ours, theirs] = [a, b].map(session => session.chunks.map(chunk => chunk.id)) as [
        string[],
        string[],
      ]
      let shared = 0
      while (shared < ours.length && ours[shared] === theirs[shared]) shared++
      for (const diff of [await a.diff(b), await b.diff(a)]) {
        expect(diff.shared).toBe(shared)
        expect(diff.ancestor).toBe(ours[shared - 1])
      }
    }))
})
