import { describe, expect, it } from 'vitest'
import { sessionGraph } from '../../../src/session/graph.ts'
import { Session } from '../../../src/session/session.ts'
import { agentWith, ask, callsEcho, echo, failureOf, store } from '../../run/make.ts'
import { counted, sandboxOf } from './make.ts'

// OpenRath 1.2, section 9 B: faults of session semantics. Not here: B7 (replay) and the files of forks in B2 (workspaces) are layers to
// come, and B9 (a registry that keeps everything) has nothing to be tested on: there is no registry.

const spent = (tokens: number) => ({ text: 'done', usage: { inputTokens: tokens, outputTokens: 0 } })

describe('B: session semantics', () => {
  it('B1 merging two forks has the shared history once, and every call answered', async () => {
    const base = ask('base').append(
      { kind: 'assistant', toolCalls: [{ id: 'c', name: 'echo', args: {} }] },
      { kind: 'tool-result', callId: 'c', tool: 'echo', outcome: { kind: 'value', value: 1 } },
    )
    const merged = await base.fork('a').user('left').merge(base.fork('b').user('right'))
    expect(merged.chunks.filter(chunk => chunk.text === 'base')).toHaveLength(1)
    expect(merged.chunks.filter(chunk => chunk.kind === 'tool-result')).toHaveLength(1)
    expect(merged.pending).toEqual([])
  })

  it('B2 what a loop did is where its input was placed, opened before or not', async () => {
    const input = ask().to('local')
    const args = { path: 'made.txt', content: 'here' }
    const write = agentWith([{ toolCalls: [{ name: 'write_workspace_file', args }] }, 'done'], {
      builtins: true,
    })
    const read = agentWith(
      [{ toolCalls: [{ name: 'read_workspace_file', args: { path: 'made.txt' } }] }, 'done'],
      {
        builtins: true,
      },
    )
    await write.agent(input)
    const out = await read.agent(input)
    expect(JSON.stringify(out.chunks.at(3))).toContain('here')
  })

  it('B3 nothing of a chunk can be changed, by a fork or by anybody', () => {
    const session = ask('base')
    const chunk = session.fork().chunks.at(0)
    expect(Object.isFrozen(chunk)).toBe(true)
    expect(() =>
      Object.assign(chunk?.kind === 'user' ? (chunk.content[0] as object) : {}, { text: 'x' }),
    ).toThrow()
    expect(session.chunks.at(0)?.text).toBe('base')
  })

  it('B4 a failed call throws its error every time, and never a partial session', async () => {
    const pending = agentWith([{ error: { status: 400, message: 'refused' } }]).agent(ask())
    const first = await failureOf(pending)
    for (let i = 0; i < 3; i++) expect(await failureOf(pending)).toBe(first)
  })

  it('B5 usage adds up over agents and forks, and a budget around them sees it all', async () => {
    const one = await agentWith([spent(20)]).agent(ask())
    const two = await agentWith([spent(20)]).agent(one.fork())
    expect(two.usage.totalTokens).toBe(40)
    const { agent, model } = agentWith(
      () => ({ ...callsEcho('x'), usage: { inputTokens: 20, outputTokens: 0 } }),
      {
        tools: [echo],
      },
    )
    await agent(ask(), { budget: { tokens: 30 } })
    expect(model.calls).toHaveLength(2)
  })

  it('B6 a record says who, with which model and instructions, when, and what called what', async () => {
    const out = await agentWith([callsEcho('x'), 'done'], { tools: [echo], name: 'porter' }).agent(
      Session.fromUserMessage('go'),
    )
    const [, answer, result] = out.chunks.slice()
    expect(answer).toMatchObject({ by: 'porter', model: 'scripted/model', prompt: expect.any(String) })
    expect(result).toMatchObject({ by: 'porter', tool: 'echo', args: { text: 'x' }, at: expect.any(Number) })
    expect(out.lineage).toMatchObject({ operation: 'Agent', by: 'porter' })
  })

  it('B8 a session read back has its parents, its usage and the way to its instructions', async () => {
    const out = await agentWith([spent(7)]).agent(ask())
    const back = await store.sessions.get(out.id)
    expect(back.lineage).toEqual(out.lineage)
    expect(back.usage.totalTokens).toBe(7)
    const answer = back.chunks.at(-1)
    const prompt = answer?.kind === 'assistant' ? answer.prompt : undefined
    expect((await store.sessions.get(`prompt-${prompt}`)).chunks.at(0)?.text).toBe('Be brief.')
  })

  it('B10 many turns use one sandbox, and the runtime closes it', async () => {
    const { opened, closed, places } = counted()
    let session = ask().to('local')
    for (let turn = 0; turn < 4; turn++) {
      await sandboxOf(places, session)
      session = session.fork().user(`turn ${turn}`)
    }
    await places.close()
    expect([opened.length, closed.length]).toEqual([1, 1])
  })

  it('B11 graphs of diamonds and long chains are walked in linear time', async () => {
    const sessions: Session[] = [ask()]
    for (let i = 0; i < 200; i++) {
      const last = sessions.at(-1) as Session
      const [a, b] = last.forks(2) as [Session, Session]
      sessions.push(a, b, await a.merge(b))
    }
    const graph = sessionGraph(sessions)
    const [first, last] = [sessions[0] as Session, sessions.at(-1) as Session]
    expect([...graph.descendants(first.id)]).toHaveLength(600)
    expect([...graph.ancestors(last.id)]).toHaveLength(600)
  })

  it('B12 each request begins with the one before it, so that a prefix cache holds', async () => {
    const { agent, model } = agentWith([callsEcho('x'), callsEcho('y'), 'done'], { tools: [echo] })
    await agent(ask())
    for (const [i, { messages, tools }] of model.calls.entries()) {
      const next = model.calls[i + 1]
      if (!next) break
      expect(next.messages.slice(0, messages.length)).toEqual(messages)
      expect(next.tools).toEqual(tools)
    }
  })
})
