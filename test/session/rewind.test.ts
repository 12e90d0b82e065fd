import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { Session } from '../../src/session/session.ts'
import { anyChunk } from './arbitrary.ts'
import { note, refusal, says, texts, user } from './make.ts'

describe('rewind', () => {
  const empty = Session.create('empty')
  const session = empty.append(user('a'), says('b'), note('c'), says('d'))

  it('keeps everything up to and including a chunk, by index, from the end, or by id', () => {
    expect(texts(session.rewind(1))).toEqual(['a', 'b'])
    expect(texts(session.rewind(-2))).toEqual(['a', 'b', 'c'])
    expect(texts(session.rewind(session.chunks.at(0)?.id as string))).toEqual(['a'])
    expect(session.rewind(-1).head).toBe(session.head)
  })

  it('records where it came from', () => {
    const back = session.rewind(0, { by: 'ann', label: 'retry', at: 5, extras: { why: 'typo' } })
    expect(back.lineage).toEqual({
      parents: [session.id],
      operation: 'rewind',
      lane: back.id,
      by: 'ann',
      label: 'retry',
      at: 5,
      extras: { why: 'typo', since: empty.id },
    })
  })

  it('followed by an append equals never having gone further', () => {
    fc.assert(
      fc.property(
        fc.array(anyChunk, { minLength: 1, maxLength: 5 }),
        fc.array(anyChunk, { maxLength: 3 }),
        anyChunk,
        fc.boolean(),
        (kept, undone, next, forked) => {
          const start = Session.create('empty')
          const here = (forked ? start.fork('side') : start).append(...kept)
          const straight = here.append(next)
          const detour = here
            .append(...undone)
            .rewind(kept.length - 1)
            .append(next)
          expect([detour.head, detour.state]).toEqual([straight.head, straight.state])
          expect(detour.messages()).toEqual(straight.messages())
        },
      ),
    )
  })

  it('finds a merged chunk by the id it had on its own branch', async () => {
    const [a, b] = Session.fromUserMessage('go').forks(2) as [Session, Session]
    const theirs = b.append(says('B'))
    const merged = await a.append(says('A')).merge(theirs)
    expect(texts(merged.rewind(theirs.head as string))).toEqual(['go', 'A', 'B'])
  })

  it.each([4, -5, 1.5, Number.NaN, Number.POSITIVE_INFINITY])(
    'refuses the index %d, which is no chunk of four',
    index => {
      const error = refusal(() => session.rewind(index))
      expect(error.code).toBe('unknown-chunk')
      expect(error.message).toContain(`no chunk ${index}`)
      expect(error.message).toContain('this session has 4, numbered from 0')
    },
  )

  it('refuses an id that is not in the session, and what is no id', () => {
    const elsewhere = Session.fromUserMessage('other').head as string
    expect(refusal(() => session.rewind(elsewhere)).message).toContain(elsewhere)
    expect(refusal(() => session.rewind('')).code).toBe('unknown-chunk')
    expect(refusal(() => Session.create('empty').rewind(0)).message).toContain('this session has 0')
    for (const odd of [null, undefined, {}, [0]]) {
      expect(refusal(() => session.rewind(odd as never)).code).toBe('invalid-argument')
    }
  })
})
