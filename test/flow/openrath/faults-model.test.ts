import { describe, expect, it } from 'vitest'
import { Agent } from '../../../src/flow/agent.ts'
import { Compressor } from '../../../src/flow/compressor.ts'
import { scripted } from '../../../src/testing/scripted.ts'
import { tool } from '../../../src/tool/tool.ts'
import { protocols } from '../../model/ask.ts'
import { wireServer } from '../../model/wire-server.ts'
import { agentWith, ask, eventsOf } from '../../run/make.ts'

// OpenRath 1.2, section 9 F: faults of the model adapters, seen from an agent. What each protocol says on the wire is in test/model.

const options = { builtins: false, retry: { baseMs: 0 } } as const

describe('F: model adapters', () => {
  it('F1 a streamed answer of Anthropic has its usage, and a budget sees it', async () => {
    await using server = await wireServer({ file: 'anthropic/text.txt' })
    const pending = new Agent('', { model: protocols.anthropic(server.url), ...options })(ask())
    await eventsOf(pending)
    const { usage } = await pending
    expect(usage.inputTokens).toBeGreaterThan(0)
    expect(usage.outputTokens).toBeGreaterThan(0)
  })

  it('F2 a tool without arguments runs when the model writes none', async () => {
    const ran: unknown[] = []
    const now = tool({
      name: 'now',
      description: '',
      input: { type: 'object' },
      run: args => void ran.push(args),
    })
    await using server = await wireServer(
      { file: 'openai-responses/no-arguments.txt' },
      { file: 'openai-responses/text.txt' },
    )
    const model = protocols['openai-responses'](server.url)
    const pending = new Agent('', { model, tools: [now], ...options })(ask())
    await eventsOf(pending)
    await pending
    expect(ran).toEqual([{}])
  })

  it('F3 a Compressor sends no choice of tools without tools', async () => {
    await using server = await wireServer({ file: 'anthropic/text.json' })
    const compressor = new Compressor('In short.', { model: protocols.anthropic(server.url) })
    await compressor(ask().append({ kind: 'assistant', text: 'a long answer' }))
    expect(server.seen[0]?.body).not.toHaveProperty('tool_choice')
    expect(server.seen[0]?.body).not.toHaveProperty('tools')
  })

  it('F4 opening a stream is retried', async () => {
    await using server = await wireServer({ status: 529, body: '{}' }, { file: 'anthropic/text.txt' })
    const pending = new Agent('', { model: protocols.anthropic(server.url), ...options })(ask())
    const events = await eventsOf(pending)
    expect((await pending).text).not.toBe('')
    expect(events.filter(event => event.type === 'retry')).toHaveLength(1)
    expect(server.seen).toHaveLength(2)
  })

  it('F5 schemas go out whole, reasoning is kept, and a turn after an empty answer is valid', async () => {
    const parameters = {
      type: 'object',
      properties: {
        additionalProperties: { type: 'string' },
        table: { type: 'object', additionalProperties: true },
      },
      additionalProperties: false,
    } as const
    const odd = tool({ name: 'odd', description: '', input: parameters, run: () => 1 })
    await using server = await wireServer({ file: 'openai-chat/text.json' })
    const out = await new Agent('', {
      model: protocols['openai-chat'](server.url),
      tools: [odd],
      ...options,
    })(ask())
    const sent = server.seen[0]?.body.tools.find(
      (one: { function: { name: string } }) => one.function.name === 'odd',
    )
    expect(sent.function.parameters).toMatchObject(parameters)
    expect(out.text).not.toBe('')

    const { agent, model } = agentWith([{ text: '' }, { text: 'now', reasoning: 'I thought.' }])
    const second = await agent((await agent(ask())).user('Well?'))
    expect(
      model.calls[1]?.messages.every(message => message.role === 'tool' || message.content.length > 0),
    ).toBe(true)
    expect(JSON.stringify(second.chunks.at(-1))).toContain('I thought.')
  })

  it('F6 an unusual finish reason does not ask again', async () => {
    const model = scripted([{ text: 'done', finishReason: 'other' }])
    const out = await new Agent('', { model, ...options })(ask())
    expect([out.text, model.calls.length]).toEqual(['done', 1])
  })
})
