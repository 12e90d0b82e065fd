import { createServer } from 'node:http'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { Agent } from '../../src/flow/agent.ts'
import { Provider } from '../../src/model/provider.ts'
import { Session } from '../../src/session/session.ts'
import { tool } from '../../src/tool/tool.ts'
import { fresh, say } from './journal/make.ts'
import { agentWith } from './make.ts'

const look = tool({
  name: 'look',
  description: 'Looks.',
  input: { type: 'object' },
  effect: 'pure',
  run: () => 'seen',
})
const valid = /^[a-zA-Z0-9_-]{1,64}$/

describe('a tool name that a model made up', () => {
  const long = 'look_'.repeat(20)
  const names = ['functions.look', 'functions/look', 'look it up', long, `${long}!`, 'größe', 'look']

  it('is sent back as one that providers take, and stays on the record as it was', async () => {
    const { runtime } = await fresh()
    const { agent, model } = agentWith([{ toolCalls: names.map(name => ({ name, args: {} })) }, 'done'], {
      tools: [look],
    })
    const pending = runtime.run(agent, say())
    const out = await pending
    const sent = model.calls[1]?.messages ?? []
    const calls = sent.flatMap(message =>
      message.role === 'assistant'
        ? message.content.flatMap(part => (part.type === 'tool-call' ? [part] : []))
        : [],
    )
    const results = sent.flatMap(message => (message.role === 'tool' ? [message] : []))
    for (const { name } of calls) expect(name).toMatch(valid)
    expect(new Set(calls.map(({ name }) => name)).size).toBe(names.length)
    expect(calls.at(-1)?.name).toBe('look')
    expect(calls[0]?.name).toMatch(/^functions_look_[0-9a-f]{8}$/)
    expect(results.map(({ callId, tool: name }) => [callId, name])).toEqual(
      calls.map(({ id, name }) => [id, name]),
    )
    const recorded = out.chunks.flatMap(chunk => (chunk.kind === 'tool-result' ? [chunk.tool] : []))
    expect(recorded).toEqual(names)
    expect(JSON.stringify(Session.fromJSONL(out.toJSONL()).messages())).toBe(JSON.stringify(out.messages()))
    expect(await runtime.replay(pending.runId, agent)).toMatchObject({ ok: true })
  })
})

describe('a call without a name', () => {
  it('is an error that the model can read, whoever the model is', async () => {
    const { runtime } = await fresh()
    const { agent, model } = agentWith([{ toolCalls: [{ name: '', args: { x: 1 } }] }, 'done'], {
      tools: [look],
    })
    const out = await runtime.run(agent, say())
    expect(out.text).toBe('done')
    const result = out.chunks.find(chunk => chunk.kind === 'tool-result')
    expect(result).toMatchObject({ tool: '(unnamed)', args: { x: 1 }, outcome: { kind: 'error' } })
    expect(JSON.stringify(model.calls[1]?.messages)).toContain('The call has no name. There are look')
  })

  let url = ''
  const sent: { messages: { tool_calls?: { function: { name: string } }[]; content?: string }[] }[] = []
  const server = createServer((request, response) => {
    let body = ''
    request.on('data', piece => {
      body += piece
    })
    request.on('end', () => {
      const asked = JSON.parse(body)
      const isLast = sent.push(asked) % 2 === 0
      const call = { index: 0, id: 'c1', type: 'function', function: { name: '', arguments: '{}' } }
      const said = isLast ? { content: 'done' } : { content: null, tool_calls: [call] }
      const end = isLast ? 'stop' : 'tool_calls'
      const usage = { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 }
      const about = { id: '1', created: 1, model: 'm' }
      const choice = (more: object) => ({ ...about, choices: [{ index: 0, ...more }], usage })
      if (!asked.stream) {
        response.setHeader('content-type', 'application/json')
        response.end(JSON.stringify(choice({ message: { role: 'assistant', ...said }, finish_reason: end })))
        return
      }
      response.setHeader('content-type', 'text/event-stream')
      for (const part of [
        choice({ delta: { role: 'assistant', ...said }, finish_reason: null }),
        choice({ delta: {}, finish_reason: end }),
      ])
        response.write(`data: ${JSON.stringify(part)}\n\n`)
      response.end('data: [DONE]\n\n')
    })
  })
  beforeAll(async () => {
    await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
    url = `http://127.0.0.1:${(server.address() as { port: number }).port}/v1`
  })
  afterAll(() => void server.close())

  it.each(['streamed', 'in one piece'])('does not vanish and does not fail: %s', async how => {
    sent.length = 0
    const { runtime } = await fresh()
    const model = new Provider({ model: 'm', kind: 'openai-compatible', baseURL: url, apiKey: 'none' })
    const agent = new Agent('Be brief.', { model, tools: [look], builtins: false })
    const out = await runtime.run(agent, say(), how === 'streamed' ? { onEvent: () => {} } : {})
    expect(out.chunks.map(({ kind }) => kind)).toEqual(['user', 'assistant', 'tool-result', 'assistant'])
    expect(out.text).toBe('done')
    const again = sent[1]?.messages.find(message => message.tool_calls)
    expect(again?.tool_calls?.[0]?.function.name).toMatch(valid)
    expect(JSON.stringify(sent[1])).toContain('The call has no name.')
  })
})
