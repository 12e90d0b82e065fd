import { expect, test } from 'vitest'
import type { ToolOutcome } from '../../src/session/chunk.ts'
import { Session } from '../../src/session/session.ts'
import { forModel, outcomeText, readToolResult } from '../../src/tool/big-output.ts'
import { call, dispatch } from './make.ts'

const value = (of: unknown): ToolOutcome => ({ kind: 'value', value: of as never })
const shown = (outcome: ToolOutcome) => (outcome.kind === 'value' ? String(outcome.value) : '')

test('what is small is the same object', () => {
  for (const outcome of [
    value('x'.repeat(48_000)),
    value({ rows: [1, 2, 3] }),
    { kind: 'error', error: 'threw', message: 'no' } as const,
    { kind: 'denied', reason: 'no' } as const,
  ]) {
    expect(forModel(outcome)).toBe(outcome)
  }
})

test('what is big is shown head and tail, with a line that says how to read the rest', () => {
  const text = Array.from({ length: 20_000 }, (_, i) => `line ${i}`).join('\n')
  const cut = shown(forModel(value(text), 1000, 'call-7'))
  expect(cut.length).toBeLessThan(1200)
  expect(cut.startsWith('line 0\n')).toBe(true)
  expect(cut.endsWith('line 19999')).toBe(true)
  expect(cut).toContain(
    `[… ${text.length - 1000} of ${text.length} characters are left out here; read_tool_result({"callId":"call-7","from":500}) reads on …]`,
  )
  expect(forModel(value(text)).kind).toBe('value')
  expect(shown(forModel(value(text)))).not.toContain('read_tool_result')
})

test('objects, errors, reasons and texts among pictures are cut too; pictures stay', () => {
  const rows = Array.from({ length: 5000 }, (_, i) => ({ i }))
  expect(shown(forModel(value(rows), 1000))).toMatch(/^\[\{"i":0\}[\s\S]*\{"i":4999\}\]$/)
  const long = 'é'.repeat(5000)
  expect(forModel({ kind: 'error', error: 'threw', message: long, detail: rows }, 100)).toMatchObject({
    kind: 'error',
    error: 'threw',
    message: expect.stringContaining('left out'),
  })
  expect(forModel({ kind: 'denied', reason: long }, 100)).toMatchObject({
    kind: 'denied',
    reason: expect.stringContaining('left out'),
  })
  const image = { type: 'image', mediaType: 'image/png', data: 'AQI=' } as const
  const parts: ToolOutcome = {
    kind: 'value',
    value: long,
    content: [{ type: 'text', text: long }, image, { type: 'text', text: 'end' }],
  }
  const cut = forModel(parts, 100)
  expect(cut.kind === 'value' && cut.content).toEqual([
    { type: 'text', text: expect.stringMatching(/left out[\s\S]*end$/) },
    image,
  ])
})

test('no character is cut in half', () => {
  const text = '😀'.repeat(1000)
  for (const limit of [99, 100, 101, 102, 103]) {
    expect(shown(forModel(value(text), limit)).isWellFormed(), `${limit}`).toBe(true)
  }
})

test('a cut outcome is made once', () => {
  const outcome = value(Array.from({ length: 100_000 }, (_, i) => ({ i })))
  expect(forModel(outcome, 1000, 'a')).toBe(forModel(outcome, 1000, 'a'))
  expect(forModel(outcome, 1000, 'b')).not.toBe(forModel(outcome, 1000, 'a'))
})

test('50 MB cost no more to show than a few characters', () => {
  const outcome = value('x'.repeat(50_000_000))
  const spent = process.cpuUsage()
  for (let i = 0; i < 100; i++) forModel({ ...outcome }, 48_000, 'c')
  expect(process.cpuUsage(spent).user / 1000).toBeLessThan(1000)
})

test('the whole of a result can be read piece by piece', async () => {
  const text = Array.from({ length: 30_000 }, (_, i) => `😀${i}`).join(' ')
  const session = Session.fromUserMessage('Read.').append(
    { kind: 'assistant', toolCalls: [{ id: 'c1', name: 'dump', args: {} }] },
    { kind: 'tool-result', callId: 'c1', tool: 'dump', outcome: value(text) },
  )
  const read = async (args: object) => {
    const { outcomes } = await dispatch([readToolResult], [call('read_tool_result', args as never)], {
      session,
    })
    return outcomes[0] as ToolOutcome
  }
  let collected = ''
  while (collected.length < text.length) {
    const piece = shown(await read({ callId: 'c1', from: collected.length }))
    expect(forModel(value(piece))).toMatchObject({ value: piece })
    collected += piece.slice(piece.indexOf('\n') + 1)
  }
  expect(collected).toBe(text)
  expect(shown(await read({ callId: 'c1', from: 2, to: 3 }))).toBe(`[characters 2 to 3 of ${text.length}]\n0`)
  expect(await read({ callId: 'c1', from: text.length })).toMatchObject({ error: 'invalid-arguments' })
  expect(await read({ callId: 'nope' })).toMatchObject({
    error: 'invalid-arguments',
    message: expect.stringContaining('nope'),
  })
  expect(await read({ callId: 'c1', from: -1 })).toMatchObject({ error: 'invalid-arguments' })
})

test('an id that two branches used means the result that the model was shown under it', async () => {
  const base = Session.fromUserMessage('Read.').append({
    kind: 'assistant',
    toolCalls: [{ id: 'c1', name: 'dump', args: {} }],
  })
  const branch = (label: string) =>
    base
      .fork(label)
      .append({ kind: 'tool-result', callId: 'c1', tool: 'dump', outcome: value(`from ${label}`) })
  const session = await branch('a').merge(branch('b'))
  const ids = session.messages().flatMap(message => (message.role === 'tool' ? [message.callId] : []))
  const texts: string[] = []
  for (const callId of ids) {
    const { outcomes } = await dispatch([readToolResult], [call('read_tool_result', { callId })], { session })
    texts.push(outcomeText(outcomes[0] as ToolOutcome).split('\n')[1] as string)
  }
  expect(texts).toEqual(['from a', 'from b'])
})
