import { describe, expect, it, vi } from 'vitest'
import { Session } from '../../src/session/session.ts'
import { calls, compressed, note, result, says, spoken, texts, user } from './make.ts'

const session = Session.create('empty').append(user('a'), says('b'), user('c'), says('d'), user('e'))
const summary = (text: string) => `user: Summary of the conversation so far:\n${text}`

describe('compress', () => {
  it('puts the summary where the first replaced chunk was', () => {
    expect(spoken(compressed(session, [1, 2, 3]))).toEqual(['user: a', summary('in short'), 'user: e'])
    expect(spoken(compressed(session, [0, 3]))).toEqual([
      summary('in short'),
      'assistant: b',
      'user: c',
      'user: e',
    ])
  })

  it('keeps the originals reachable', () => {
    const short = compressed(session, [0, 1, 2, 3])
    expect(texts(short)).toEqual(['a', 'b', 'c', 'd', 'e', 'in short'])
    expect(short.rewind(4).messages()).toEqual(session.messages())
  })

  it('shows only the outer of nested summaries, and both of two that are apart', () => {
    const inner = compressed(session, [0, 1], 'inner')
    expect(spoken(compressed(inner, [5, 2], 'outer'))).toEqual([summary('outer'), 'assistant: d', 'user: e'])
    const third = compressed(compressed(inner, [5], 'second'), [6], 'third')
    expect(spoken(third)[0]).toBe(summary('third'))
    expect(spoken(compressed(inner, [3], 'other'))).toEqual([
      summary('inner'),
      'user: c',
      summary('other'),
      'user: e',
    ])
  })

  it('goes on after the summary', () => {
    expect(spoken(compressed(session, [0, 1, 2, 3, 4]).append(user('f')))).toEqual([
      summary('in short'),
      'user: f',
    ])
  })

  it('cuts a tool turn in two without breaking it', () => {
    const turn = Session.create('empty').append(
      user('go'),
      calls('c1', 'c2'),
      result('c1'),
      result('c2'),
      says('done'),
    )
    expect(spoken(compressed(turn, [0, 1]))).toEqual([
      summary('in short'),
      'assistant: look#c1',
      'tool c1: result of c1',
      'assistant: look#c2',
      'tool c2: result of c2',
      'assistant: done',
    ])
    expect(spoken(compressed(turn, [2]))).toEqual([
      'user: go',
      'assistant: look#c1 look#c2',
      'tool c1: (error)',
      'tool c2: result of c2',
      summary('in short'),
      'assistant: done',
    ])
  })

  it('may replace system messages and evidence too', () => {
    const mixed = Session.fromAgentPrompt('Be brief.').append(note('n'), user('a'))
    expect(spoken(compressed(mixed, [0, 1]))).toEqual([summary('in short'), 'user: a'])
  })
})

describe('the text of a compressed session', () => {
  it('is found without a look at all that the summary stands for', () => {
    const long = Session.create('empty').append(...Array.from({ length: 500 }, () => says('b')))
    const short = compressed(long, [...long.chunks.slice().keys()])
    const noted = vi.spyOn(Map.prototype, 'set')
    try {
      expect(short.text).toBe('in short')
      expect(noted.mock.calls.length).toBeLessThan(10)
    } finally {
      noted.mockRestore()
    }
  })

  it('is the summary when it replaced the last answer', () => {
    expect(compressed(session, [0, 1, 2, 3]).text).toBe('in short')
    expect(compressed(compressed(session, [3], 'inner'), [5], 'outer').text).toBe('outer')
  })

  it('is the last answer when the summary left that alone', () => {
    expect(compressed(session, [0, 1]).text).toBe('d')
    expect(compressed(session, [0, 1, 2, 3]).append(says('new')).text).toBe('new')
  })

  it('is the summary when there is no other answer', () => {
    expect(compressed(Session.fromUserMessage('a'), [0]).text).toBe('in short')
  })
})
