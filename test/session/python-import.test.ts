import { describe, expect, it } from 'vitest'
import { Session } from '../../src/session/session.ts'
import { readSessions } from '../../src/session/stream.ts'
import type { VerificationProblem } from '../../src/session/verify.ts'
import { all, refusal, spoken } from './make.ts'

const header = {
  record_type: 'header',
  schema_version: 1,
  id: '6f1c2a34-0000-4000-8000-000000000001',
  created_at: '2026-01-01T00:00:00+00:00',
  parent_session_ids: ['6f1c2a34-0000-4000-8000-000000000000'],
  lineage_operator: 'run_session_loop',
  lineage_kind: 'op_session_loop',
  lineage_extras: [['loop.truncated', true]],
  sandbox_backend: 'opensandbox',
  sandbox_spec: {
    image: 'python:3.12',
    entrypoint: ['sh'],
    env: { OPENAI_API_KEY: 'sk-secret' },
    timeout_seconds: 60,
    working_dir: '/work',
  },
  sandbox_handle_id: 'h-1',
}
const call = (id: string, args: string) => ({
  id,
  type: 'function',
  function: { name: 'look', arguments: args },
})
const rows = [
  { kind: 'system', payload: { content: 'Be brief.' } },
  { kind: 'user', payload: { content: 'Odd: \u2028 é 😀' } },
  {
    kind: 'assistant',
    payload: { content: null, tool_calls: [call('c1', '{"depth": 2}'), call('c2', '{"depth": ')] },
  },
  { kind: 'tool_result', payload: { tool_call_id: 'c1', name: 'look', content: '{"entries": [1, 2]}' } },
  {
    kind: 'tool_result',
    payload: {
      tool_call_id: 'c2',
      name: 'look',
      content: '{"ok": false, "error_kind": "invalid_tool_arguments", "message": "bad", "detail": "JSON"}',
    },
  },
  { kind: 'user', payload: { content: '' } },
  { kind: 'assistant', payload: { content: 'Done.', tool_calls: null } },
]
const chunks = rows.map((row, index) => ({ record_type: 'chunk', index, ...row }))
const trailer = {
  record_type: 'trailer',
  closed_at: '2026-01-01T00:01:00+00:00',
  final_chunk_count: chunks.length,
  cumulative_usage: { prompt_tokens: 100, completion_tokens: 20, total_tokens: 120 },
}
const file = (...records: object[]) => records.map(record => `${JSON.stringify(record)}\n`).join('')
const closed = file(header, ...chunks, trailer)

describe('a closed session file of OpenRath Python v1', () => {
  const session = Session.fromJSONL(closed)

  it('becomes a session with its id, its time and its parents', () => {
    expect(session.id).toBe(header.id)
    expect(session.lineage).toEqual({
      parents: header.parent_session_ids,
      operation: 'import',
      at: Date.UTC(2026, 0, 1),
      extras: {
        importedFrom: 'openrath-python-1',
        lineage_operator: 'run_session_loop',
        lineage_kind: 'op_session_loop',
        lineage_extras: [['loop.truncated', true]],
        sandbox_handle_id: 'h-1',
      },
    })
    expect(session.chunks.at(-1)?.at).toBe(Date.UTC(2026, 0, 1))
    expect(session.verify()).toEqual({ ok: true, checked: 8 })
  })

  it('keeps what was said, asked and answered', () => {
    expect(session.chunks.map(chunk => chunk.kind)).toEqual([
      'placement',
      'system',
      'user',
      'assistant',
      'tool-result',
      'tool-result',
      'note',
      'assistant',
    ])
    expect(spoken(session)).toEqual([
      'system: Be brief.',
      'user: Odd: \u2028 é 😀',
      'assistant: look#c1 look#c2',
      'tool c1: [object Object]',
      'tool c2: (error)',
      'assistant: Done.',
    ])
    expect(session.chunks.at(3)).toMatchObject({
      finishReason: 'tool-calls',
      content: [
        { type: 'tool-call', id: 'c1', args: { depth: 2 } },
        { type: 'tool-call', id: 'c2', args: '{"depth": ' },
      ],
    })
    expect(session.chunks.at(4)).toMatchObject({ outcome: { kind: 'value', value: { entries: [1, 2] } } })
    expect(session.chunks.at(5)).toMatchObject({
      outcome: { kind: 'error', error: 'invalid_tool_arguments', message: 'bad', detail: 'JSON' },
    })
    expect(session.chunks.at(6)).toMatchObject({ name: 'empty-message', data: { kind: 'user' } })
    expect(session.text).toBe('Done.')
  })

  it('keeps the usage, and the place without its environment', () => {
    expect(session.usage).toMatchObject({ inputTokens: 100, outputTokens: 20, totalTokens: 120 })
    expect(session.placement).toEqual({ backend: 'opensandbox', spec: '/work' })
    expect(session.chunks.at(0)).toMatchObject({ extras: { image: 'python:3.12', timeoutSeconds: 60 } })
    expect(session.toJSONL()).not.toContain('sk-secret')
  })

  it('is written in our own format from then on', () => {
    const again = Session.fromJSONL(session.toJSONL())
    expect([again.head, again.state, again.id]).toEqual([session.head, session.state, session.id])
    expect(again.verify().ok).toBe(true)
  })

  it('may have no place, no rows and no usage', () => {
    const bare = { ...header, sandbox_backend: null, sandbox_spec: null }
    const none = Session.fromJSONL(file(bare, { ...trailer, final_chunk_count: 0, cumulative_usage: null }))
    expect([none.length, none.placement, none.verify().ok]).toEqual([0, undefined, true])
  })

  it('keeps usage that belongs to no answer with the lineage', () => {
    const summary = Session.fromJSONL(file(header, chunks[1] as object, { ...trailer, final_chunk_count: 1 }))
    expect(summary.lineage.extras.cumulative_usage).toEqual(trailer.cumulative_usage)
    expect(summary.usage.totalTokens).toBe(0)
  })
})

describe('a damaged session file of OpenRath Python v1', () => {
  function read(text: string) {
    const damage: VerificationProblem[] = []
    return { session: Session.fromJSONL(text, { onDamage: problem => damage.push(problem) }), damage }
  }

  it('is read without its trailer, as a partial file is, and reported', () => {
    const { session, damage } = read(file(header, ...chunks.slice(0, 2)))
    expect(session.length).toBe(3)
    expect(damage[0]?.reason).toContain('the trailer is missing')
    expect(session.verify()).toMatchObject({ ok: false, problem: damage[0] })
  })

  it('is read as far as it goes when its last line is torn, at any byte', () => {
    const bytes = Buffer.from(closed)
    for (let end = file(header).length; end < bytes.length - 1; end += 3) {
      const text = bytes.subarray(0, end).toString('utf8')
      const { session, damage } = read(text)
      expect(session.length).toBeGreaterThanOrEqual(text.split('\n').length - 1)
      expect(damage).toHaveLength(1)
    }
  })

  it('is reported when the trailer counts other rows', () => {
    expect(read(file(header, ...chunks.slice(1), trailer)).damage).toEqual([
      { reason: 'the trailer counts 7 chunks, and 6 are here' },
    ])
  })

  it.each([
    [
      'a newer schema',
      file({ ...header, schema_version: 2 }),
      'has schema 2, and this openrath reads up to 1',
    ],
    ['no id', file({ ...header, id: null }), 'Line 1 is a header without an id'],
    ['a row before the header', file(chunks[0] as object, header), 'Line 1 comes before any session record'],
    ['a bad line', file(header).concat('{"record\n', file(trailer)), 'Line 2 is not JSON'],
    ['an unknown record', file(header, { record_type: 'footer' }), 'Line 2 has the record_type "footer"'],
    [
      'an unknown kind',
      file(header, { record_type: 'chunk', kind: 'image', payload: {} }),
      'the chunk kind "image"',
    ],
    [
      'no payload',
      file(header, { record_type: 'chunk', kind: 'user', payload: [] }),
      'Line 2 is a chunk without a payload',
    ],
    [
      'a call of nothing',
      file(header, { record_type: 'chunk', kind: 'assistant', payload: { tool_calls: [{ id: 'c' }] } }),
      'Line 2 has a tool call without a function',
    ],
    [
      'a result of nothing',
      file(header, { record_type: 'chunk', kind: 'tool_result', payload: { content: '1' } }),
      'Line 2 is a tool result without its call',
    ],
    ['two headers', file(header, header), 'holds 2 sessions'],
  ])('is refused with %s', (_, text, message) => {
    expect(refusal(() => Session.fromJSONL(text)).message).toContain(message)
  })

  it('names the newer schema by its code', () => {
    expect(refusal(() => Session.fromJSONL(file({ ...header, schema_version: 3 })))).toMatchObject({
      code: 'format-newer',
      data: { version: 3, reads: 1 },
    })
  })

  it('streams beside sessions of our own format', async () => {
    const own = Session.fromUserMessage('ours')
    const both = await all(readSessions([closed, own.toJSONL(), closed]))
    expect(both.map(session => session.id)).toEqual([header.id, own.id, header.id])
  })
})
