import { describe, expect, it } from 'vitest'
import type { Chunk, ChunkInput } from '../../src/session/chunk.ts'
import { Session } from '../../src/session/session.ts'
import { kinds } from './arbitrary.ts'
import { note, says, user } from './make.ts'

const digest = 'ab'.repeat(32)

/** One chunk of each kind with every field it has. */
const full: ChunkInput[] = [
  { kind: 'system', content: 'Be brief.', by: 'Review/writer', at: 1, extras: { cache: true } },
  {
    kind: 'user',
    content: [
      { type: 'text', text: 'Look:', extras: { citations: [1] } },
      { type: 'image', mediaType: 'image/png', data: 'AAEC' },
      { type: 'image', mediaType: 'image/png', url: 'https://example.com/a.png', extras: { detail: 'low' } },
      { type: 'file', mediaType: 'text/plain', data: 'aGk=', name: 'hi.txt' },
    ],
    at: 2,
  },
  {
    kind: 'assistant',
    content: [
      { type: 'reasoning', text: 'Hm.', extras: { signature: 'EqoB' } },
      { type: 'text', text: 'Let me see.' },
      { type: 'tool-call', id: 'c1', name: 'look', args: { depth: 2 }, extras: { index: 0 } },
    ],
    model: 'openai/gpt-5.5',
    finishReason: 'tool-calls',
    usage: {
      inputTokens: 5,
      outputTokens: 2,
      cachedInputTokens: 1,
      reasoningTokens: 1,
      totalTokens: 7,
      cost: 0.5,
    },
    prompt: digest,
    at: 3,
  },
  {
    kind: 'tool-result',
    callId: 'c1',
    tool: 'look',
    args: { depth: 2 },
    outcome: { kind: 'value', value: { found: 3 }, content: [{ type: 'text', text: '3 found' }] },
    durationMs: 1.5,
    ranOn: { backend: 'local' },
    files: [{ path: 'b.txt', change: 'renamed', from: 'a.txt', patch: '@@' }],
    tree: digest,
    sessions: [{ session: 's9', head: null }],
    usage: { inputTokens: 1, outputTokens: 1, cachedInputTokens: 0, reasoningTokens: 0, totalTokens: 2 },
    at: 4,
  },
  {
    kind: 'effect',
    name: 'send-mail',
    request: { to: 'ann' },
    outcome: { kind: 'error', error: 'run-failed', message: 'no such box' },
    effect: 'external',
    began: 3,
    durationMs: 1,
    callId: 'c1',
    sessions: [{ session: 's9', head: digest }],
    usage: { inputTokens: 1, outputTokens: 1, cachedInputTokens: 0, reasoningTokens: 0, totalTokens: 2 },
    at: 4,
  },
  {
    kind: 'memory',
    op: 'recall',
    store: 'local',
    query: 'likes',
    hits: [{ id: 'm1', text: 'tea', score: 0.9, extras: { age: 1 } }],
    injected: 'The user likes tea.',
    entries: ['m1'],
    from: [digest],
    usage: { inputTokens: 1, outputTokens: 0, cachedInputTokens: 0, reasoningTokens: 0, totalTokens: 1 },
    error: 'slow',
    at: 5,
  },
  {
    kind: 'placement',
    backend: 'local',
    spec: './',
    workspace: { path: '/w', tree: digest, extras: {} },
    at: 6,
  },
  {
    kind: 'route',
    candidates: [{ name: 'a', description: 'first' }, { name: 'b' }],
    choice: null,
    reason: 'neither',
    model: 'm',
    at: 7,
  },
  {
    kind: 'approval',
    approval: 'ask-1',
    callId: 'c1',
    tool: 'rm',
    args: [1],
    question: 'May I?',
    verdict: 'rejected',
    decidedBy: 'ann',
    reason: 'no',
    answer: false,
    at: 8,
  },
  { kind: 'verdict', verdict: 'reject', subject: 'branch a', reason: 'wrong', score: 0.1, at: 9 },
  {
    kind: 'merge',
    branches: [{ session: 's1', head: digest, branch: 'a', chunks: 2 }],
    ancestor: null,
    policy: 'concat',
    conflicts: [{ path: 'a.txt', settled: 'ours', by: 'ann' }],
    at: 10,
  },
  { kind: 'compress', replaced: [digest], summary: 'in short', model: 'm', at: 11 },
  {
    kind: 'error',
    error: 'timeout',
    message: 'too slow',
    attempt: 2,
    retry: 'after',
    detail: { ms: 9 },
    at: 12,
  },
  { kind: 'note', name: 'mine', data: { any: ['thing'] }, at: 13 },
]

describe('append', () => {
  it.each(full.map(chunk => [chunk.kind, chunk] as const))('keeps every field of a %s chunk', (_, chunk) => {
    const session = Session.create('empty').append(chunk)
    const { content, ...rest } = chunk as { content?: unknown }
    const recorded = { ...(session.chunks.at(0) as Chunk) } as { content?: unknown }
    const { content: kept, ...others } = recorded
    expect(others).toEqual(rest)
    expect(kept).toEqual(typeof content === 'string' ? [{ type: 'text', text: content }] : content)
    expect(Session.fromJSONL(session.toJSONL()).chunks.at(0)).toEqual(session.chunks.at(0))
  })

  it('knows fourteen kinds', () => {
    expect(full.map(chunk => chunk.kind)).toEqual(kinds)
    expect(kinds).toHaveLength(14)
  })

  it('keeps bytes as base64, whichever way they were given', () => {
    const given = (data: string | Uint8Array) =>
      Session.fromUserMessage([{ type: 'image', mediaType: 'image/png', data }], { at: 1 })
    const image = given(new Uint8Array([0, 1, 254, 255]))
    expect(image.chunks.at(0)).toMatchObject({ content: [{ data: 'AAH+/w==' }] })
    expect(image.head).toBe(given('AAH+/w==').head)
    expect(image.head).toBe(given(Buffer.from([0, 1, 254, 255])).head)
  })

  it('writes the shorthands of an answer as content: thought, said, asked', () => {
    const short = Session.create('empty').append({
      kind: 'assistant',
      text: 'Let me see.',
      reasoning: 'Hm.',
      toolCalls: [{ id: 'c1', name: 'look', args: {} }],
    })
    expect(short.chunks.at(0)).toMatchObject({
      content: [
        { type: 'reasoning', text: 'Hm.' },
        { type: 'text', text: 'Let me see.' },
        { type: 'tool-call', id: 'c1', name: 'look', args: {} },
      ],
    })
  })

  it('fills in counts that were left out: zero, and the total as their sum', () => {
    const session = Session.create('empty').append(says('hi', { inputTokens: 3, outputTokens: 4 }))
    const expected = {
      inputTokens: 3,
      outputTokens: 4,
      cachedInputTokens: 0,
      reasoningTokens: 0,
      totalTokens: 7,
    }
    expect(session.usage).toEqual(expected)
    expect(session.append(says('more', { cost: 0.25 })).usage).toEqual({ ...expected, cost: 0.25 })
  })

  it('gives each chunk its index, and the same time to chunks of one call', () => {
    const session = Session.create('empty').append({ kind: 'note', name: 'a' }, { kind: 'note', name: 'b' })
    expect(session.chunks.map(chunk => chunk.index)).toEqual([0, 1])
    expect(session.chunks.at(0)?.at).toBe(session.chunks.at(1)?.at)
    expect(session.chunks.at(1)?.at).toBe(session.lineage.at)
  })

  it('keeps an answer that says nothing when its finish reason says why', () => {
    const session = Session.fromUserMessage('hi').append({
      kind: 'assistant',
      text: '',
      finishReason: 'content-filter',
    })
    expect(session.length).toBe(2)
    expect(session.messages()).toHaveLength(1)
  })

  it('leaves the session that it was called on as it was', () => {
    const before = Session.fromUserMessage('hi', { at: 1 })
    const head = before.head
    const a = before.append(note('a'))
    const b = before.append(note('b'))
    expect([before.length, before.head]).toEqual([1, head])
    expect([a.length, b.length]).toEqual([2, 2])
    expect(a.chunks.at(0)).toBe(b.chunks.at(0))
    expect(a.head).not.toBe(b.head)
  })

  it('shows the last non-empty answer as the text of the session', () => {
    const asked = Session.create('empty').append(user('hi'))
    expect(asked.text).toBe('')
    const answered = asked.append(says('first'), user('go on'))
    expect(answered.text).toBe('first')
    expect(answered.append({ kind: 'assistant', text: '', finishReason: 'stop' }).text).toBe('first')
  })
})
