import { describe, expect, it } from 'vitest'
import type { ModelRequest } from '../../src/model/spec.ts'
import { estimateRequest } from '../../src/run/transcript.ts'
import { agentWith, ask, callsEcho, echo, eventsOf, failureOf, kinds } from '../run/make.ts'

const tooLong = { error: { status: 400, message: 'context_length_exceeded' } }
const isSummary = (request: ModelRequest) => request.tools.length === 0

describe('autoCompress', () => {
  it('keeps 200 rounds inside the limit of the model', async () => {
    const limit = 1500
    let round = 0
    let largest = 0
    const { agent, model } = agentWith(
      request => {
        const size = estimateRequest(request)
        largest = Math.max(largest, size)
        if (size > limit) return tooLong
        if (isSummary(request)) return `Summary up to round ${round}. ${'s'.repeat(200)}`
        return ++round <= 200 ? callsEcho(`round ${round} ${'x'.repeat(200)}`) : 'done'
      },
      { tools: [echo], maxRounds: 300, autoCompress: { above: 1200 } },
    )
    const out = await agent(ask('Count to 200.'))
    expect(out.text).toBe('done')
    expect(out.chunks.filter(chunk => chunk.kind === 'error')).toEqual([])
    expect(out.chunks.filter(chunk => chunk.kind === 'tool-result')).toHaveLength(200)
    const compressions = out.chunks.filter(chunk => chunk.kind === 'compress').length
    expect(compressions).toBeGreaterThan(10)
    expect(compressions).toBeLessThan(100)
    expect(model.calls).toHaveLength(201 + compressions)
    expect(largest).toBeGreaterThan(900)
    expect(out.verify().ok).toBe(true)
  })

  it('is why: without it the same run is refused', async () => {
    const { agent } = agentWith(
      (request, n) => (estimateRequest(request) > 1500 ? tooLong : callsEcho(`${n} ${'x'.repeat(200)}`)),
      { tools: [echo], maxRounds: 300 },
    )
    expect((await failureOf(agent(ask()))).message).toContain('context_length_exceeded')
  })

  it('goes by what the provider counted, where it did', async () => {
    const { agent, model } = agentWith(
      [{ ...callsEcho('short'), usage: { inputTokens: 5000, outputTokens: 10 } }, 'A summary.', 'done'],
      { tools: [echo], autoCompress: { above: 1000, keep: 0 } },
    )
    const out = await agent(ask())
    expect(kinds(out)).toEqual(['user', 'assistant', 'tool-result', 'compress', 'assistant'])
    expect(model.calls[2]?.messages.map(message => message.role)).toEqual(['system', 'user'])
  })

  it('estimates a history that it was given, before its first request', async () => {
    const { agent } = agentWith(['A summary.', 'done'], {
      autoCompress: { above: 1000, keep: 1, instruction: 'Short.' },
    })
    const history = ask('x'.repeat(3000)).append({ kind: 'assistant', text: 'y' })
    const out = await agent(history.user('z'.repeat(1100)))
    expect(kinds(out)).toEqual(['user', 'assistant', 'user', 'compress', 'assistant'])
  })

  it('gives up what it was to keep when that is too much', async () => {
    const { agent, model } = agentWith(
      ({ messages }) => (JSON.stringify(messages[0]).includes('Short.') ? 'A summary.' : 'done'),
      { autoCompress: { above: 500, keep: 2, instruction: 'Short.' } },
    )
    const history = ask('x').append({ kind: 'assistant', text: 'y' })
    const out = await agent(history.user('z'.repeat(3600)).user('!'))
    expect(kinds(out).slice(4)).toEqual(['compress', 'compress', 'assistant'])
    for (const call of model.calls) expect(estimateRequest(call)).toBeLessThanOrEqual(500)
    expect(out.text).toBe('done')
  })

  it('spends from the budget, and its words are not the words of the agent', async () => {
    const long = ask('x'.repeat(4000)).append({ kind: 'assistant', text: 'y' })
    const { agent, model } = agentWith(() => ({ text: 'said', deltas: ['said'] }), {
      autoCompress: { above: 1000, keep: 0 },
    })
    const out = await agent(long, { budget: { rounds: 2 } })
    expect(kinds(out).slice(2)).toEqual(['compress', 'error'])
    for (const call of model.calls) expect(JSON.stringify(call.messages)).not.toContain('Be brief.')
    const events = await eventsOf(agent(long))
    expect(events.filter(event => event.type === 'text-delta')).toHaveLength(1)
  })

  it('fails the run with the session so far when the summary cannot be used', async () => {
    const { agent } = agentWith([{ text: 'cut', finishReason: 'length' }], {
      autoCompress: { above: 1000, keep: 0 },
    })
    const error = await failureOf(agent(ask('x'.repeat(5000)).user('more')))
    expect(error.code).toBe('output-invalid')
    expect(kinds(error.session)).toEqual(['user', 'user', 'error'])
  })

  it('without a number is refused', () => {
    expect(() => agentWith([], { autoCompress: { above: 0 } })).toThrow(
      'autoCompress takes { above: tokens }',
    )
  })
})
