import { describe, expect, it } from 'vitest'
import { Session } from '../../src/session/session.ts'
import { note, says, spoken, user } from './make.ts'

const session = Session.create('empty').append(user('pay 10 to ann'), says('done'), note('n'))
const tampered = (from: string, to: string) => Session.fromJSONL(session.toJSONL().replace(from, to))

describe('verify', () => {
  it('says how many chunks it checked', () => {
    expect(session.verify()).toEqual({ ok: true, checked: 3 })
    expect(Session.create('empty').verify()).toEqual({ ok: true, checked: 0 })
  })

  it('names the first chunk that is not what its id says', () => {
    const { ok, checked, problem } = tampered('"done"', '"refused"').verify()
    expect([ok, checked]).toEqual([false, 1])
    expect(problem).toMatchObject({ index: 1, id: session.chunks.at(1)?.id })
    expect(problem?.reason).toContain('chunk 1 (assistant) is recorded as')
  })

  it('finds a change that came with a matching id, by the chunk that follows', () => {
    const forged = Session.create('empty').append(user('pay 99 to ann')).head as string
    const text = session
      .toJSONL()
      .replace('pay 10', 'pay 99')
      .replace(session.chunks.at(0)?.id as string, forged)
    expect(Session.fromJSONL(text).verify()).toMatchObject({ ok: false, checked: 1, problem: { index: 1 } })
  })

  it('still finds it after the session went on, was forked, merged or written again', async () => {
    const bad = tampered('pay 10', 'pay 99')
    const later = [
      bad.append(note('x')),
      bad.fork().append(note('x')),
      bad.rewind(0),
      await bad.merge(Session.create('empty')),
    ]
    for (const each of [...later, ...later.map(made => Session.fromJSONL(made.toJSONL()))]) {
      expect(each.verify()).toMatchObject({ ok: false, problem: { index: 0 } })
    }
  })

  it('ends on a record whose summaries replace each other, and so do its messages', () => {
    const digest = (character: string) => character.repeat(64)
    const [opening] = session.toJSONL().split('\n') as [string]
    const summary = (id: string, replaced: string[]) =>
      JSON.stringify({
        type: 'chunk',
        id,
        chunk: { kind: 'compress', at: 1, replaced, summary: id.charAt(0) },
      })
    const said = {
      type: 'chunk',
      id: digest('a'),
      chunk: { kind: 'user', at: 1, content: [{ type: 'text', text: 'x' }] },
    }
    const knot = Session.fromJSONL(
      [
        opening,
        JSON.stringify(said),
        summary(digest('b'), [digest('a'), digest('b'), digest('c')]),
        summary(digest('c'), [digest('b')]),
      ].join('\n'),
    )
    expect(knot.verify().ok).toBe(false)
    expect(spoken(knot)).toEqual(['user: Summary of the conversation so far:\nc'])
    expect(knot.text).toBe('c')
  })
})
