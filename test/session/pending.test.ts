import { describe, expect, it } from 'vitest'
import { Session } from '../../src/session/session.ts'
import { calls, note, result, says, user } from './make.ts'

const empty = Session.create('empty')
const waiting = (session: Session) =>
  session.pending.map(each => (each.kind === 'tool-call' ? each.call.id : each.chunk.approval))

describe('pending', () => {
  it('is empty on a session that waits for nothing', () => {
    expect(waiting(empty)).toEqual([])
    expect(waiting(empty.append(user('hi'), says('hello')))).toEqual([])
  })

  it('holds the tool calls without a result, in the order asked', () => {
    const asked = empty.append(calls('c1', 'c2', 'c3'), note('n'))
    expect(waiting(asked)).toEqual(['c1', 'c2', 'c3'])
    expect(waiting(asked.append(result('c2')))).toEqual(['c1', 'c3'])
    expect(waiting(asked.append(result('c2'), result('c1'), result('c3')))).toEqual([])
    expect(asked.pending[0]).toMatchObject({
      kind: 'tool-call',
      chunk: { index: 0 },
      call: { args: { id: 'c1' } },
    })
  })

  it('lets go of calls when the conversation moves on', () => {
    expect(waiting(empty.append(calls('c1'), user('never mind')))).toEqual([])
    expect(waiting(empty.append(calls('c1'), calls('c2')))).toEqual(['c2'])
    expect(waiting(empty.append(calls('c1'), says('done')))).toEqual([])
  })

  it('is not fooled by an id that an earlier turn used', () => {
    expect(waiting(empty.append(calls('c1'), result('c1'), calls('c1')))).toEqual(['c1'])
  })

  it('holds questions until they are answered, several at once', () => {
    const ask = (approval: string) => ({ kind: 'approval', approval, question: 'May I?' }) as const
    const asked = empty.append(ask('a'), ask('b'), calls('c1'))
    expect(waiting(asked)).toEqual(['c1', 'a', 'b'])
    const answered = asked.append({ kind: 'approval', approval: 'a', verdict: 'approved', decidedBy: 'ann' })
    expect(waiting(answered)).toEqual(['c1', 'b'])
    expect(waiting(answered.append(user('go on')))).toEqual(['b'])
    expect(waiting(answered.append(ask('a')))).toEqual(['c1', 'b', 'a'])
  })

  it('holds no question about a call that has a result, or that nobody waits for any more', () => {
    const ask = (approval: string, callId?: string) =>
      ({ kind: 'approval', approval, ...(callId && { callId }), question: 'May I?' }) as const
    const asked = empty.append(calls('c1', 'c2'), ask('a', 'c1'), ask('b', 'c2'), ask('c'))
    expect(waiting(asked)).toEqual(['c1', 'c2', 'a', 'b', 'c'])
    expect(waiting(asked.append(result('c1')))).toEqual(['c2', 'b', 'c'])
    expect(waiting(asked.append(user('never mind')))).toEqual(['c'])
    expect(waiting(asked.append(says('done')))).toEqual(['c'])
    expect(waiting(asked.append(calls('c3'), ask('d', 'c3')))).toEqual(['c3', 'c', 'd'])
    expect(waiting(Session.fromJSONL(asked.append(result('c1')).toJSONL()))).toEqual(['c2', 'b', 'c'])
  })

  it('is what it was before, after a rewind', () => {
    const done = empty.append(calls('c1'), result('c1'))
    expect(waiting(done.rewind(0))).toEqual(['c1'])
  })

  it('survives a round trip', () => {
    expect(waiting(Session.fromJSONL(empty.append(calls('c1', 'c2'), result('c1')).toJSONL()))).toEqual([
      'c2',
    ])
  })
})
