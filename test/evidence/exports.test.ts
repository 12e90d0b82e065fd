import { convertToModelMessages, type UIMessage as SdkMessage, validateUIMessages } from 'ai'
import { expect, test } from 'vitest'
import { toATIF } from '../../src/evidence/exports/atif.ts'
import { toOpenAIMessages } from '../../src/evidence/exports/openai.ts'
import { preferencePairs } from '../../src/evidence/exports/preference.ts'
import { toUIMessages } from '../../src/evidence/exports/ui.ts'
import { Session } from '../../src/session/session.ts'
import { atifProblems } from './atif-schema.ts'
import { storeWithGraph } from './make.ts'

const png = 'iVBORw0KGgo='
const usage = { inputTokens: 100, cachedInputTokens: 40, outputTokens: 20, reasoningTokens: 5, cost: 0.01 }

/** Everything that can be said, and every way a call can end. */
const session = Session.fromAgentPrompt('Be brief.')
  .user([
    { type: 'text', text: 'What is this?' },
    { type: 'image', mediaType: 'image/png', data: png },
    { type: 'file', mediaType: 'application/pdf', name: 'a.pdf', data: png },
    { type: 'file', mediaType: 'text/csv', url: 'https://example.org/a.csv' },
  ])
  .append(
    {
      kind: 'assistant',
      reasoning: 'Look closer.',
      text: 'Let me see.',
      toolCalls: [
        { id: 'c1', name: 'zoom', args: { by: 2 } },
        { id: 'c2', name: 'zoom', args: 'not json' },
        { id: 'c3', name: 'shell', args: {} },
        { id: 'c4', name: 'zoom', args: {} },
      ],
      model: 'm-1',
      by: 'Eye',
      usage,
      prompt: 'ab'.repeat(32),
    },
    {
      kind: 'tool-result',
      callId: 'c1',
      tool: 'zoom',
      outcome: {
        kind: 'value',
        value: null,
        content: [
          { type: 'text', text: 'zoomed' },
          { type: 'image', mediaType: 'image/png', data: png },
        ],
      },
      durationMs: 3,
    },
    {
      kind: 'tool-result',
      callId: 'c2',
      tool: 'zoom',
      outcome: { kind: 'error', error: 'threw', message: 'Oh.' },
    },
    { kind: 'tool-result', callId: 'c3', tool: 'shell', outcome: { kind: 'denied', reason: 'not here' } },
    { kind: 'verdict', verdict: 'accept', subject: 'nobody' },
    { kind: 'assistant', text: 'A dot.', model: 'm-1', by: 'Eye', usage },
    {
      kind: 'tool-result',
      callId: 'late',
      tool: 'zoom',
      args: {},
      outcome: { kind: 'value', value: { dots: 1 } },
    },
  )
  .user('Thanks.')

test('OpenAI messages have every call answered and nothing that the format has no place for', () => {
  const data = `data:image/png;base64,${png}`
  expect(toOpenAIMessages(session)).toEqual([
    { role: 'system', content: 'Be brief.' },
    {
      role: 'user',
      content: [
        { type: 'text', text: 'What is this?' },
        { type: 'image_url', image_url: { url: data } },
        { type: 'file', file: { filename: 'a.pdf', file_data: `data:application/pdf;base64,${png}` } },
        { type: 'text', text: '[file text/csv https://example.org/a.csv]' },
      ],
    },
    {
      role: 'assistant',
      content: 'Let me see.',
      tool_calls: [
        { id: 'c1', type: 'function', function: { name: 'zoom', arguments: '{"by":2}' } },
        { id: 'c2', type: 'function', function: { name: 'zoom', arguments: 'not json' } },
        { id: 'c3', type: 'function', function: { name: 'shell', arguments: '{}' } },
        { id: 'c4', type: 'function', function: { name: 'zoom', arguments: '{}' } },
      ],
    },
    { role: 'tool', tool_call_id: 'c1', content: 'zoomed[image image/png]' },
    { role: 'tool', tool_call_id: 'c2', content: 'threw: Oh.' },
    { role: 'tool', tool_call_id: 'c3', content: 'denied: not here' },
    { role: 'tool', tool_call_id: 'c4', content: 'unanswered: No result of this call was recorded.' },
    { role: 'assistant', content: 'A dot.' },
    {
      role: 'assistant',
      content: null,
      tool_calls: [{ id: 'late', type: 'function', function: { name: 'zoom', arguments: '{}' } }],
    },
    { role: 'tool', tool_call_id: 'late', content: '{"dots":1}' },
    { role: 'user', content: 'Thanks.' },
  ])
})

test('UI messages are what the AI SDK takes, and become model messages again', async () => {
  const messages = toUIMessages(session)
  const typed: SdkMessage[] = messages
  await expect(validateUIMessages({ messages: typed })).resolves.toHaveLength(4)
  expect(messages.map(({ role, parts }) => [role, parts.map(part => part.type).join(' ')])).toEqual([
    ['system', 'text'],
    ['user', 'text file file file'],
    [
      'assistant',
      'step-start reasoning text dynamic-tool dynamic-tool dynamic-tool dynamic-tool step-start text step-start dynamic-tool',
    ],
    ['user', 'text'],
  ])
  const states = messages[2]?.parts.flatMap(part => (part.type === 'dynamic-tool' ? [part.state] : []))
  expect(states).toEqual([
    'output-available',
    'output-error',
    'output-denied',
    'input-available',
    'output-available',
  ])
  expect(new Set(messages.map(({ id }) => id)).size).toBe(messages.length)
  const model = await convertToModelMessages(typed)
  expect(model.map(({ role }) => role)).toEqual([
    'system',
    'user',
    'assistant',
    'tool',
    'assistant',
    'assistant',
    'tool',
    'user',
  ])
  await expect(
    validateUIMessages({ messages: [{ ...typed[0], parts: [{ type: 'text' }] }] }),
  ).rejects.toThrow()
})

test('a trajectory follows ATIF 1.8', () => {
  const trajectory = toATIF(session, { prompt: () => 'You look at pictures.' })
  expect(atifProblems(JSON.parse(JSON.stringify(trajectory)))).toEqual([])
  expect(trajectory.steps.map(({ source }) => source)).toEqual([
    'system',
    'user',
    'system',
    'agent',
    'agent',
    'system',
    'user',
  ])
  expect(trajectory.steps[3]).toMatchObject({
    message: 'Let me see.',
    model_name: 'm-1',
    reasoning_content: 'Look closer.',
    tool_calls: [{ arguments: { by: 2 } }, { arguments: { input: 'not json' } }, {}, {}],
    observation: {
      results: [
        { source_call_id: 'c1', content: [{ type: 'text' }, { type: 'image' }], extra: { duration_ms: 3 } },
        { source_call_id: 'c2', content: 'threw: Oh.', extra: { outcome: 'error' } },
        { source_call_id: 'c3', extra: { outcome: 'denied' } },
      ],
    },
    metrics: { prompt_tokens: 100, completion_tokens: 20, cached_tokens: 40, cost_usd: 0.01 },
    extra: { by: 'Eye', chunk: session.chunks.at(2)?.id },
  })
  expect(trajectory).toMatchObject({
    agent: { name: 'Eye', version: 'unknown', model_name: 'm-1' },
    final_metrics: { total_prompt_tokens: 200, total_cost_usd: 0.02, total_steps: 7 },
  })
  expect(toATIF(session, { evidence: true }).steps).toHaveLength(7)
  expect(() => toATIF(Session.create('empty'))).toThrow(/needs one step/)
})

test('the check of trajectories finds what the format forbids', () => {
  const step = { step_id: 1, source: 'user', message: 'Hi' }
  const good = { schema_version: 'ATIF-v1.8', agent: { name: 'a', version: '1' }, steps: [step] }
  expect(atifProblems(good)).toEqual([])
  const bad: [object, RegExp][] = [
    [{ ...good, steps: [] }, /steps/],
    [{ ...good, more: 1 }, /more/],
    [{ ...good, schema_version: 'ATIF-v1.9' }, /schema_version/],
    [{ ...good, steps: [{ ...step, step_id: 2 }] }, /step_id/],
    [{ ...good, steps: [{ ...step, model_name: 'm' }] }, /model_name/],
    [{ ...good, steps: [{ ...step, timestamp: 'today' }] }, /timestamp/],
    [
      { ...good, steps: [{ ...step, observation: { results: [{ source_call_id: 'x' }] } }] },
      /source_call_id/,
    ],
    [{ ...good, steps: [{ ...step, message: [{ type: 'image', text: 'x' }] }] }, /message/],
  ]
  for (const [document, where] of bad) expect(atifProblems(document).join()).toMatch(where)
})

test('judged siblings are pairs of a chosen and a rejected continuation of one prompt', async () => {
  const { out, branches } = await storeWithGraph()
  const [long, short] = branches as [Session, Session]
  const pairs = preferencePairs([out, ...branches])
  expect(pairs).toHaveLength(1)
  expect(pairs[0]).toMatchObject({
    prompt: [{ role: 'user' }],
    chosen: [
      { role: 'assistant', tool_calls: [{}] },
      { role: 'tool' },
      { content: 'Rain, rain,\nand rain.' },
    ],
    rejected: [{}, {}, { content: 'Rain.' }],
    reason: 'it rhymes; too short',
    sessions: { chosen: long.id, rejected: short.id },
  })
  expect(preferencePairs([out, long])).toEqual([])
})

test('a verdict names a branch or a chunk, the last one counts, and who was only not picked is no rejection', async () => {
  const root = Session.fromUserMessage('Write.')
  const [a, b] = ['a', 'b'].map(name =>
    root.fork(name).append({ kind: 'assistant', text: name.toUpperCase() }),
  ) as [Session, Session]
  const joined = await a.merge(b, { policy: 'ours' })
  const verdict = (subject: string, verdict: 'accept' | 'reject') =>
    ({ kind: 'verdict', subject, verdict }) as const
  const of = (holder: Session, options = {}) =>
    preferencePairs([holder, a, b], options).map(({ chosen, rejected }) => [
      chosen[0]?.content,
      rejected[0]?.content,
    ])
  expect(of(joined.append(verdict('a', 'accept'), verdict(b.head as string, 'reject')))).toEqual([['A', 'B']])
  expect(of(joined.append(verdict(a.id, 'reject'), verdict(a.id, 'accept'), verdict('b', 'reject')))).toEqual(
    [['A', 'B']],
  )
  const picked = joined.append(verdict(a.id, 'accept'))
  expect(of(picked)).toEqual([])
  expect(of(picked, { unpicked: true })).toEqual([['A', 'B']])
  expect(of(joined.append(verdict('gone', 'reject'), verdict('a', 'accept')))).toEqual([])
})
