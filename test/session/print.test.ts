import { inspect } from 'node:util'
import { describe, expect, it } from 'vitest'
import { Session } from '../../src/session/session.ts'
import { calls, note, result, says, user } from './make.ts'

describe('String(session)', () => {
  it('says who it is and what it holds', () => {
    const session = Session.create('empty')
      .append(user('Count the words:\n  one two'), calls('c1'), result('c1', { words: 2 }))
      .to('local', '/work')
      .fork('careful')
      .append(says('Two.', { inputTokens: 30, outputTokens: 2 }))
    expect(String(session)).toBe(
      [
        `Session ${session.id} (5 chunks, append, branch careful, on local, 32 tokens)`,
        '   0 user        Count the words: one two',
        '   1 assistant   → look({"id":"c1"})',
        '   2 tool-result look ← {"words":2}',
        '   3 placement   local /work',
        '   4 assistant   Two.',
      ].join('\n'),
    )
    expect(inspect(session)).toBe(String(session))
  })

  it('prints nothing that a terminal would obey', () => {
    const printed = String(Session.create('empty').append(says('safe \u001b[2J\u202egnp.exe\u0007')))
    expect(printed).toContain('safe \ufffd[2J\ufffdgnp.exe\ufffd')
  })

  it('leaves out the middle of a long history', () => {
    const names = (count: number) => Array.from({ length: count }, (_, i) => note(`n${i}`))
    const lines = (count: number) => String(Session.create('empty').append(...names(count))).split('\n')
    expect(lines(9)).toHaveLength(10)
    expect(lines(10).slice(4, 7)).toEqual(['   3 note        n3', '     … 2 more', '   6 note        n6'])
    expect(lines(1000)).toHaveLength(10)
    expect(lines(1000).at(-1)).toBe(' 999 note        n999')
  })

  it('keeps every chunk on one short line', () => {
    const lines = String(Session.fromUserMessage(`a\r\nb ${'x'.repeat(10_000)}`)).split('\n')
    expect(lines).toHaveLength(2)
    expect(lines[1]).toMatch(/^ {3}0 user {8}a b x+…$/)
    expect(lines[1]?.length).toBeLessThan(130)
  })

  it('prints an empty session as its title', () => {
    const session = Session.create('empty')
    expect(String(session)).toBe(`Session ${session.id} (0 chunks, create)`)
  })

  it('reads every kind of chunk as a sentence', () => {
    const hash = 'ab'.repeat(32)
    const session = Session.create('empty').append(
      { kind: 'memory', op: 'recall', store: 'local', query: 'likes' },
      { kind: 'route', candidates: [{ name: 'a' }], choice: 'a', reason: 'fits' },
      { kind: 'approval', approval: 'x', question: 'May I?' },
      { kind: 'approval', approval: 'x', tool: 'rm', verdict: 'rejected', reason: 'no' },
      { kind: 'verdict', verdict: 'accept', subject: 'branch a' },
      {
        kind: 'merge',
        branches: [{ session: 's', head: hash, branch: '', chunks: 1 }],
        ancestor: null,
        policy: 'concat',
      },
      { kind: 'error', error: 'timeout', message: 'too slow' },
      { kind: 'tool-result', callId: 'c', tool: 'rm', outcome: { kind: 'denied', reason: 'no' } },
    )
    expect(session.chunks.map(chunk => chunk.text)).toEqual([
      'likes',
      'a: fits',
      'asked: May I?',
      'rejected: rm: no',
      'accept: branch a',
      'concat of trunk',
      'timeout: too slow',
      'denied: no',
    ])
  })
})
