import { describe, expect, it } from 'vitest'
import { Session } from '../../src/session/session.ts'
import { calls, note, result, says, spoken, user } from './make.ts'
import { expectValidForEveryProvider } from './valid-messages.ts'

const empty = Session.create('empty')

describe('the messages of a session', () => {
  it('are what was said, without evidence, system messages first', () => {
    const session = empty.append(user('hi'), { kind: 'system', text: 'Be brief.' }, note('n'), says('hello'))
    expect(spoken(session.to('local'))).toEqual(['system: Be brief.', 'user: hi', 'assistant: hello'])
  })

  it('keep parts, reasoning and extras as they were recorded', () => {
    const session = Session.fromUserMessage([
      { type: 'image', mediaType: 'image/png', url: 'u', extras: { detail: 'low' } },
    ]).append({
      kind: 'assistant',
      reasoning: [{ text: '', extras: { encrypted: 'x' } }],
      text: 'A cat.',
    })
    expect(session.messages().map(message => 'content' in message && message.content)).toEqual(
      session.chunks.map(chunk => 'content' in chunk && chunk.content),
    )
  })

  it('let a person speak while tools run: the results come first, and nothing is asked twice', () => {
    const session = empty.append(
      user('go'),
      calls('c1', 'c2'),
      result('c1'),
      user('wait'),
      result('c2'),
      says('done'),
    )
    expect(spoken(session)).toEqual([
      'user: go',
      'assistant: look#c1 look#c2',
      'tool c1: result of c1',
      'tool c2: result of c2',
      'user: wait',
      'assistant: done',
    ])
  })

  it('answer calls in the order they were asked, whatever order results came in', () => {
    const session = empty.append(
      user('go'),
      calls('c1', 'c2'),
      result('c2'),
      note('n'),
      result('c1'),
      says('done'),
    )
    expect(spoken(session)).toEqual([
      'user: go',
      'assistant: look#c1 look#c2',
      'tool c1: result of c1',
      'tool c2: result of c2',
      'assistant: done',
    ])
  })

  it('answer a call that was left open, in the middle or at the end, with an error', () => {
    const session = empty.append(calls('c1', 'c2'), result('c1'), user('stop'), calls('c3'))
    expect(spoken(session)).toEqual([
      'assistant: look#c1 look#c2',
      'tool c1: result of c1',
      'tool c2: (error)',
      'user: stop',
      'assistant: look#c3',
      'tool c3: (error)',
    ])
  })

  it('rename a call id that comes again', () => {
    const session = empty.append(
      calls('c'),
      result('c', 1),
      calls('c'),
      result('c', 2),
      calls('c~2'),
      result('c~2', 3),
    )
    expect(spoken(session)).toEqual([
      'assistant: look#c',
      'tool c: 1',
      'assistant: look#c~2',
      'tool c~2: 2',
      'assistant: look#c~2~2',
      'tool c~2~2: 3',
    ])
  })

  it('rename it to something that no call was ever named', () => {
    const session = empty.append(calls('c~2'), calls('c'), calls('c'), calls('c'))
    const ids = session.messages().flatMap(message => (message.role === 'tool' ? [message.callId] : []))
    expect(ids).toEqual(['c~2', 'c', 'c~3', 'c~4'])
  })

  it('show a result whose call lies elsewhere with the call asked again', () => {
    const session = empty.append(user('go'), result('lost', 'late'))
    expect(spoken(session)).toEqual(['user: go', 'assistant: look#lost', 'tool lost: late'])
    expect(session.messages()[1]).toMatchObject({ content: [{ args: { id: 'lost' } }] })
  })

  it('let recalled memory wait until running tools have answered', () => {
    const recall = { kind: 'memory', op: 'recall', store: 'local', injected: 'You know: tea.' } as const
    const session = empty.append(calls('c1'), recall, result('c1'), { ...recall, injected: '' })
    expect(spoken(session)).toEqual(['assistant: look#c1', 'tool c1: result of c1', 'user: You know: tea.'])
  })

  it('leave out empty texts and answers that say nothing', () => {
    const blank = { type: 'text', text: '' } as const
    const image = { type: 'image', mediaType: 'image/png', url: 'u' } as const
    const session = Session.fromUserMessage([blank, image]).append(
      { kind: 'assistant', content: [blank, { type: 'tool-call', id: 'c1', name: 'look', args: {} }] },
      { kind: 'assistant', content: [blank], finishReason: 'stop' },
      { kind: 'assistant', content: [{ type: 'reasoning', text: '' }], finishReason: 'length' },
    )
    expect(spoken(session)).toEqual(['user: (image)', 'assistant: look#c1', 'tool c1: (error)'])
    expectValidForEveryProvider(session.messages())
  })

  it('leave out texts of nothing but space, which Anthropic refuses', () => {
    const space = { type: 'text', text: '\n\n' } as const
    const session = Session.fromUserMessage('go').append(
      { kind: 'assistant', content: [space, { type: 'tool-call', id: 'c1', name: 'look', args: {} }] },
      result('c1'),
      { kind: 'assistant', content: [space] },
      { kind: 'user', content: ' ' },
      { kind: 'system', content: '\t' },
    )
    expect(spoken(session)).toEqual(['user: go', 'assistant: look#c1', 'tool c1: result of c1'])
    expectValidForEveryProvider(session.messages())
  })

  it('are empty on an empty session', () => {
    expect(empty.messages()).toEqual([])
    expect(empty.append(note('n')).messages()).toEqual([])
  })
})

describe('the messages of a merged session', () => {
  it('show both answers when two branches ran the same call', async () => {
    const asked = empty.append(user('go'), calls('c1'))
    const [a, b] = asked.forks(2) as [Session, Session]
    expect(a.messages().at(-1)).toMatchObject({
      role: 'tool',
      outcome: { kind: 'error', error: 'unanswered' },
    })
    const merged = await a
      .append(result('c1', 'from a'), says('A'))
      .merge(b.append(result('c1', 'from b'), says('B')))
    expect(spoken(merged)).toEqual([
      'user: go',
      'assistant: look#c1',
      'tool c1: from a',
      'assistant: A',
      'assistant: look#c1~2',
      'tool c1~2: from b',
      'assistant: B',
    ])
  })

  it('keep both results when both branches stopped right after them', async () => {
    const [a, b] = empty.append(calls('c1', 'c2')).forks(2) as [Session, Session]
    const merged = await a
      .append(result('c1', 'from a'))
      .merge(b.append(result('c1', 'from b'), result('c2')))
    expect(spoken(merged)).toEqual([
      'assistant: look#c1 look#c2',
      'tool c1: from a',
      'tool c2: (error)',
      'assistant: look#c1~2',
      'tool c1~2: from b',
      'assistant: look#c2~2',
      'tool c2~2: result of c2',
    ])
  })

  it('never put one branch between another’s call and its result', async () => {
    const [a, b] = empty.append(user('go')).forks(2) as [Session, Session]
    const merged = await a
      .append(calls('c1'), result('c1', 1))
      .merge(b.append(calls('c1'), result('c1', 2), calls('c2')))
    expect(spoken(merged)).toEqual([
      'user: go',
      'assistant: look#c1',
      'tool c1: 1',
      'assistant: look#c1~2',
      'tool c1~2: 2',
      'assistant: look#c2',
      'tool c2: (error)',
    ])
  })

  it('do not show a fork the result that came after it', () => {
    const asked = empty.append(calls('c1'))
    const fork = asked.fork()
    asked.append(result('c1'))
    expect(fork.pending).toHaveLength(1)
    expect(spoken(fork)).toEqual(['assistant: look#c1', 'tool c1: (error)'])
  })
})
