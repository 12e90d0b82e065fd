import { describe, expect, it } from 'vitest'
import { unfinished } from '../../src/session/fold.ts'
import { Session } from '../../src/session/session.ts'
import { calls, note, result, says, user } from './make.ts'

const empty = Session.create('empty')
const answered = empty.append(user('one?'), says('one'))
const stop = (error = 'budget-spent') =>
  ({ kind: 'error', error, message: 'It is used up.', retry: 'after', detail: unfinished }) as const
/** As a selector or a compressor is stopped, and as agents were before they said so. */
const aside = { kind: 'error', error: 'budget-spent', message: 'Nobody chose.' } as const
const look = ({ stopped, text }: Session) => [stopped, text]

describe('a call that was stopped', () => {
  it('has no text, says why, and keeps both through a round trip, a fork, a detach and further notes', () => {
    const cut = answered.append(user('two?'), calls('c1'), result('c1'), stop('max-rounds'))
    expect(look(cut)).toEqual(['max-rounds', ''])
    expect(look(Session.fromJSONL(cut.toJSONL()))).toEqual(['max-rounds', ''])
    for (const same of [
      cut.fork(),
      cut.detach(),
      cut.append(note('n')),
      cut.to('local', '/x'),
      cut.user('go on'),
    ])
      expect(look(same)).toEqual(['max-rounds', ''])
    expect(String(cut)).toContain('stopped: max-rounds')
  })

  it('has none either where nothing new was asked: it should have answered, and did not', () => {
    expect(look(answered.append(stop()))).toEqual(['budget-spent', ''])
  })

  it('is over with the next answer, and not with a call for tools', () => {
    const cut = answered.append(user('two?'), stop())
    expect(look(cut.append(calls('c1'), result('c1')))).toEqual(['budget-spent', ''])
    expect(look(cut.append(says('two')))).toEqual([undefined, 'two'])
    expect(look(cut.fork('on').append(says('two')))).toEqual([undefined, 'two'])
    expect(look(cut.append(calls('c1'), result('c1'), stop('max-rounds')))).toEqual(['max-rounds', ''])
  })

  it('is not yet stopped before, after a rewind', () => {
    const cut = answered.append(user('two?'), stop())
    expect(look(cut.rewind(cut.length - 2))).toEqual([undefined, 'one'])
    expect(look(cut.rewind(1))).toEqual([undefined, 'one'])
  })
})

describe('a selector or a compressor that was stopped', () => {
  it('leaves an answer that was given', () => {
    expect(look(answered.append(aside))).toEqual(['budget-spent', 'one'])
  })

  it('leaves none to what was asked since', () => {
    expect(look(answered.append(user('two?'), aside))).toEqual(['budget-spent', ''])
  })
})

describe('of branches that are merged', () => {
  const [left, right] = answered.user('two?').forks(['left', 'right'])
  const cut = left.append(stop())
  const done = right.append(says('two'))

  it('one that was stopped is seen on the whole, in either order, until somebody answers for all', async () => {
    expect(look(await cut.merge(done))).toEqual(['budget-spent', 'two'])
    const last = await done.merge(cut)
    expect(look(last)).toEqual(['budget-spent', 'two'])
    expect(look(last.append(says('both')))).toEqual([undefined, 'both'])
    expect(look(Session.fromJSONL((await cut.merge(done)).toJSONL()))).toEqual(['budget-spent', 'two'])
  })

  it('all that were stopped leave no text of before', async () => {
    const both = await cut.merge(right.append(stop('max-rounds')))
    expect(look(both)).toEqual(['max-rounds', ''])
    expect(look(both.append(says('both')))).toEqual([undefined, 'both'])
  })

  it('one that is left out says nothing', async () => {
    expect(look(await done.merge(cut, { policy: 'ours' }))).toEqual([undefined, 'two'])
  })
})

it('a failed attempt that was followed by an answer, or a branch that was left out, stopped nothing', () => {
  const attempt = { kind: 'error', error: 'model-overloaded', message: '529', attempt: 1 } as const
  expect(look(answered.append(attempt))).toEqual([undefined, 'one'])
  expect(look(answered.append({ ...attempt, error: 'budget-spent' }))).toEqual([undefined, 'one'])
})
