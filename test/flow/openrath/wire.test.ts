import { describe, expect, it } from 'vitest'
import { Session } from '../../../src/session/session.ts'
import { tool } from '../../../src/tool/tool.ts'
import { agentWith, ask, callsEcho, echo } from '../../run/make.ts'

// OpenRath 1.2, list W: what a model is sent.

describe('W: wire', () => {
  it('W1 roles are mapped in order, the instructions first', async () => {
    const { agent, model } = agentWith([callsEcho('x'), 'done'], { tools: [echo] })
    await agent(ask())
    expect(model.calls[1]?.messages.map(message => message.role)).toEqual([
      'system',
      'user',
      'assistant',
      'tool',
    ])
  })

  it('W2 tool calls go back as they came; that their arguments are data differs: text that nobody parsed cannot be checked', async () => {
    const { agent, model } = agentWith([callsEcho('x'), 'done'], { tools: [echo] })
    await agent(ask())
    expect(model.calls[1]?.messages[2]).toMatchObject({
      content: [{ type: 'tool-call', id: 'call-1', name: 'echo', args: { text: 'x' } }],
    })
  })

  it('W3 a result names the call that it answers', async () => {
    const { agent, model } = agentWith([callsEcho('x'), 'done'], { tools: [echo] })
    await agent(ask())
    expect(model.calls[1]?.messages[3]).toMatchObject({ role: 'tool', callId: 'call-1', tool: 'echo' })
  })

  it('W4 the print shows real characters', () => {
    expect(String(Session.fromUserMessage('日本語 é'))).toContain('日本語 é')
  })

  it('W5 schemas go out untouched; that additionalProperties stays differs: strict mode needs it, and a property may be called so', async () => {
    const parameters = {
      type: 'object',
      properties: { additionalProperties: { type: 'string' } },
      additionalProperties: false,
    } as const
    const odd = tool({ name: 'odd', description: '', input: parameters, run: () => 1 })
    const { agent, model } = agentWith(['done'], { tools: [odd] })
    await agent(ask())
    expect(model.calls[0]?.tools.find(one => one.name === 'odd')?.parameters).toEqual(parameters)
  })
})
