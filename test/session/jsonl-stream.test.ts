import fc from 'fast-check'
import { describe, expect, it, vi } from 'vitest'
import { Session } from '../../src/session/session.ts'
import { readSessions, writeSessions } from '../../src/session/stream.ts'
import type { VerificationProblem } from '../../src/session/verify.ts'
import { all, note, refusalOf, says, texts, user } from './make.ts'
import { anySteps, grow } from './tree.ts'

const written = (sessions: Iterable<Session>) => [...writeSessions(sessions)].join('')
const read = (pieces: Iterable<string | Uint8Array>, onDamage?: (problem: VerificationProblem) => void) =>
  all(readSessions(pieces, onDamage && { onDamage }))

/** A text’s bytes in pieces that end anywhere, in the middle of characters too. */
function pieces(text: string, sizes: readonly number[]): Uint8Array[] {
  const bytes = new TextEncoder().encode(text)
  const parts: Uint8Array[] = []
  for (let start = 0, i = 0; start < bytes.length; i++) {
    const end = start + (sizes[i % sizes.length] ?? 1)
    parts.push(bytes.subarray(start, end))
    start = end
  }
  return parts
}

describe('a file of several sessions', () => {
  const start = Session.create('empty').append(user('é 😀 \u2028'), says('ok'))
  const [a, b] = start.forks(2) as [Session, Session]
  const branches = [start, a.append(says('A')), b.append(says('B'))]

  it('holds shared history once', async () => {
    const text = written(branches)
    expect(text.split('\n').filter(line => line.includes('"type":"chunk"'))).toHaveLength(4)
    const back = await read([text])
    expect(back.map(texts)).toEqual(branches.map(texts))
    expect(back[1]?.chunks.at(0)).toBe(back[2]?.chunks.at(0))
  })

  it('may hold children before parents', async () => {
    const back = await read([written(branches.toReversed())])
    expect(back.map(session => [session.id, session.head])).toEqual(
      branches.toReversed().map(each => [each.id, each.head]),
    )
  })

  it('gives every session back, whole, from bytes that come in any pieces', async () => {
    await fc.assert(
      fc.asyncProperty(
        anySteps,
        fc.array(fc.integer({ min: 1, max: 40 }), { minLength: 1, maxLength: 5 }),
        async (steps, sizes) => {
          const sessions = await grow(steps)
          const text = written(sessions)
          const back = await read(pieces(text, sizes))
          expect(back.map(session => session.toJSONL())).toEqual(sessions.map(session => session.toJSONL()))
          expect(back.every(session => session.verify().ok)).toBe(true)
          expect(written(back)).toBe(text)
        },
      ),
      { numRuns: 60 },
    )
  })

  it('is looked through once, also where one line comes in many pieces', async () => {
    const text = Session.create('empty')
      .append(user('x'.repeat(10_000)))
      .toJSONL()
    const looked = vi.spyOn(String.prototype, 'indexOf')
    let characters = 0
    try {
      await read(pieces(text, [100]))
      for (const [i, [sought]] of looked.mock.calls.entries())
        if (sought === '\n') characters += String(looked.mock.contexts[i]).length
    } finally {
      looked.mockRestore()
    }
    expect(characters).toBeLessThan(2 * text.length)
  })

  it('yields each session as soon as its section ends, and closes a source that is left early', async () => {
    let taken = 0
    let closed = false
    function* source() {
      try {
        for (const line of writeSessions(branches)) {
          taken++
          yield line
        }
      } finally {
        closed = true
      }
    }
    for await (const session of readSessions(source())) {
      expect(session.id).toBe(start.id)
      break
    }
    expect([taken, closed]).toEqual([4, true])
  })

  it('keeps the sessions that came before, wherever it is cut off, and reports the one that is not whole', async () => {
    const bytes = new TextEncoder().encode(written(branches))
    const ends = branches.map((_, i) => new TextEncoder().encode(written(branches.slice(0, i + 1))).length)
    for (let cut = bytes.indexOf(10) + 1; cut < bytes.length; cut++) {
      const damage: VerificationProblem[] = []
      const back = await read([bytes.subarray(0, cut)], problem => damage.push(problem))
      // An end record is whole without its line feed.
      const whole = ends.filter(end => end - 1 <= cut).length
      const isBetween = ends.includes(cut) || ends.includes(cut + 1)
      expect(back.slice(0, whole).map(session => session.head)).toEqual(
        branches.slice(0, whole).map(each => each.head),
      )
      expect(back.filter(session => session.verify().ok)).toHaveLength(whole)
      expect(damage).toHaveLength(isBetween ? 0 : 1)
    }
  })

  it('reports a line torn between two sessions', async () => {
    const damage: VerificationProblem[] = []
    const text = `${written([start])}{"type":"sess`
    expect(await read([text], problem => damage.push(problem))).toHaveLength(1)
    expect(damage).toEqual([{ reason: 'the file breaks off in line 5; everything before it was read' }])
    expect(Session.fromJSONL(text).verify()).toMatchObject({ ok: false, problem: damage[0] })
  })

  it('reports a section that another one follows without an end', async () => {
    const [first, second] = branches.map(session => session.toJSONL()) as [string, string]
    const cut = first.split('\n').slice(0, -2).join('\n')
    const back = await read([`${cut}\n${second}`])
    expect(back.map(session => session.verify().ok)).toEqual([false, true])
  })

  it('names the line of a malformed record, also in a later section', async () => {
    const text = written([start, start.append(note('n'))]).replace('"name":"n"', '"nome":"n"')
    expect((await refusalOf(read([text]))).message).toContain('line 6.nome: is not a field here')
  })

  it('is nothing when there is nothing, and refuses what is no session', async () => {
    expect(await read([])).toEqual([])
    expect(written([])).toBe('')
    expect(() => written([{} as Session])).toThrow('Expected a Session, not {  }.')
  })
})
