import { describe, expect, it } from 'vitest'
import { EmptyWorkflow } from '../../src/flow/empty-workflow.ts'
import { ModelPart } from '../../src/flow/model-part.ts'
import { Selector, type SelectorOptions } from '../../src/flow/selector.ts'
import { Workflow } from '../../src/flow/workflow.ts'
import type { Chunk } from '../../src/session/chunk.ts'
import type { Session } from '../../src/session/session.ts'
import { type Script, scripted } from '../../src/testing/scripted.ts'
import { agentWith, ask, callsEcho, echo, eventsOf, failureOf, kinds, store } from '../run/make.ts'

function selectorWith(script: Script, options: SelectorOptions = {}) {
  const model = scripted(script)
  return { model, selector: new Selector({ model, retry: { baseMs: 0 }, ...options }) }
}

class Triage extends Workflow {
  override description = 'Sorts new questions.'
  forward(session: Session) {
    return session.append({ kind: 'note', name: 'triage' })
  }
}

class Tech extends Workflow {
  override description = 'Solves technical questions.'
  forward(session: Session) {
    return session.append({ kind: 'note', name: 'tech' })
  }
}

const triage = new Triage()
const tech = new Tech()
const json = (choice: string, reason = 'because') => JSON.stringify({ reason, choice })
const routeOf = (session: Session) =>
  session.chunks.find(chunk => chunk.kind === 'route') as Chunk<'route'> | undefined

describe('a selector', () => {
  it('gives the chosen workflow; calling it puts the choice on the record before it runs', async () => {
    const { selector, model } = selectorWith([json('Tech', 'It is a crash.')])
    const session = ask('It crashes.')
    const next = await selector(session, triage, tech)
    expect(next).toBeInstanceOf(Tech)
    expect([next.name, next.description]).toEqual(['Tech', tech.description])
    const out = await next(session)
    expect(kinds(out)).toEqual(['user', 'route', 'note'])
    expect(routeOf(out)).toMatchObject({
      by: 'Selector',
      candidates: [
        { name: 'Triage', description: 'Sorts new questions.' },
        { name: 'Tech', description: 'Solves technical questions.' },
      ],
      choice: 'Tech',
      reason: 'It is a crash.',
      model: 'scripted/model',
    })
    expect(out.usage.totalTokens).toBe(routeOf(out)?.usage?.totalTokens)
    expect(out.usage.totalTokens).toBeGreaterThan(0)
    expect(model.calls[0]?.output?.schema).toMatchObject({
      properties: { choice: { enum: ['Triage', 'Tech', 'none'] } },
    })
    expect(model.calls[0]).toMatchObject({ tools: [] })
    expect(model.calls[0]).not.toHaveProperty('toolChoice')
  })

  it('decides: the very object, the reason, and a session with the route, which is in the store', async () => {
    const { selector } = selectorWith([json('Triage', 'New.')])
    const asked = ask()
    const { choice, reason, session } = await selector.decide(asked, triage, tech)
    expect(choice).toBe(triage)
    expect(reason).toBe('New.')
    expect(kinds(session)).toEqual(['user', 'route'])
    expect(session.lineage).toMatchObject({ operation: 'Selector', parents: [asked.id] })
    expect((await store.sessions.get(session.id)).head).toBe(session.head)
    expect(asked.length).toBe(1)
  })

  it('does not change what agents perceive by choosing', async () => {
    const { selector } = selectorWith([json('Tech')])
    const asked = ask()
    expect((await selector.decide(asked, tech)).session.state).toBe(asked.state)
  })

  it('gives an EmptyWorkflow when none fits, which keeps the decision when it is called', async () => {
    const { selector } = selectorWith([json('none', 'All done.')])
    const session = ask()
    const next = await selector(session, triage, tech)
    expect(next).toBeInstanceOf(EmptyWorkflow)
    expect(routeOf(await next(session))).toMatchObject({ choice: null, reason: 'All done.' })
  })

  it('is shown tool calls as text: providers refuse calls in a request that describes no tools', async () => {
    const { selector, model } = selectorWith(['Tech'])
    const { agent } = agentWith([{ ...callsEcho('hi'), reasoning: 'hm' }, 'done'], { tools: [echo] })
    await selector.decide(await agent(ask()), tech)
    const { messages = [] } = model.calls[0] ?? {}
    expect(messages.map(message => message.role)).toEqual([
      ...['system', 'user', 'assistant', 'user', 'assistant', 'user'],
    ])
    expect(JSON.stringify(messages[2])).toContain('(calls echo with')
    expect(JSON.stringify(messages[3])).toContain('[result of echo]')
  })

  it('drives a loop of plain TypeScript', async () => {
    const { selector, model } = selectorWith(['Triage', 'Tech', 'none'])
    const loop = async (start: Session) => {
      let session = start
      let next: Workflow
      // biome-ignore lint/suspicious/noAssignInExpressions: as architecture.md writes it.
      while (!((next = await selector(session, triage, tech)) instanceof EmptyWorkflow))
        session = await next(session)
      return session
    }
    expect(kinds(await loop(ask()))).toEqual(['user', 'route', 'note', 'route', 'note'])
    model.done()
  })

  it('tells two of one class apart, and names that would collide', async () => {
    const one = agentWith(['one'], { description: 'First.' }).agent
    const two = agentWith(['two'], { description: 'Second.' }).agent
    const others = ['Agent-1', 'none', '2', 'two words'].map(
      name => agentWith([], { name, description: name }).agent,
    )
    const { selector, model } = selectorWith(['Agent-3'])
    const session = ask()
    const next = await selector(session, one, two, ...others)
    const schema = model.calls[0]?.output?.schema as { properties: { choice: { enum: string[] } } }
    const keys = schema.properties.choice.enum
    expect(keys).toEqual(['Agent-2', 'Agent-3', 'Agent-1', 'none-1', 'workflow-2', 'two-words', 'none'])
    expect((await next(session)).text).toBe('two')
  })

  it('is paid for once, however many branches go the chosen way', async () => {
    const usage = { inputTokens: 10, outputTokens: 0 }
    const way = agentWith(() => ({ text: 'done', usage }), { description: 'Does it.' }).agent
    const selector = new Selector({ model: scripted([{ text: 'Agent', usage }]) })
    const session = ask()
    const next = await selector(session, way)
    const [first, ...rest] = await Promise.all([session, ...session.forks(2)].map(branch => next(branch)))
    const out = await (first as Session).merge(rest)
    expect(out.chunks.filter(chunk => chunk.kind === 'route')).toHaveLength(1)
    expect(out.usage.totalTokens).toBe(40)
  })

  it('works for workflows with private parts, and is itself found as a part with a model', async () => {
    const { agent } = agentWith(['hello'], { name: 'greeter', description: 'Greets.' })
    const { selector } = selectorWith(['greeter'])
    const next = (await selector(ask(), agent)) as typeof agent
    expect(next.tools).toEqual([])
    next.addTool(echo)
    expect(agent.tools.map(tool => tool.name)).toEqual(['echo'])
    expect(selector).toBeInstanceOf(ModelPart)
    expect(selector).not.toBeInstanceOf(Workflow)
    expect(String(selector)).toBe('Selector(scripted/model)')
    const other = scripted([], { id: 'scripted/other' })
    expect(selector.to(other).model.id).toBe('scripted/other')
  })

  it('puts the choice on another session too, once, and on one that is still being made', async () => {
    const { selector } = selectorWith(['Tech'])
    const session = ask()
    const next = await selector(session, triage, tech)
    const out = await next(session.user('And hurry.'))
    expect(kinds(out)).toEqual(['user', 'user', 'route', 'note'])
    expect(kinds(await next(await next(session)))).toEqual(['user', 'route', 'note', 'note'])
    expect(kinds(await next(triage(session)))).toEqual(['user', 'note', 'route', 'note'])
  })
})

describe('what a model says', () => {
  const choiceFor = async (...answers: Script & readonly unknown[]) => {
    const { selector, model } = selectorWith(answers)
    const { session } = await selector.decide(ask(), triage, tech)
    return { choice: routeOf(session)?.choice, asked: model.calls.length, session, model }
  }

  it('may be JSON, JSON in a fence, a key on its own line, or a call of the tool', async () => {
    for (const answer of [
      json('Tech'),
      '"Tech"',
      `\`\`\`json\n${json('Tech')}\n\`\`\``,
      'Tech',
      'It looks technical.\n\n**Tech**\n',
      { toolCalls: [{ name: 'route', args: { choice: 'Tech', reason: 'x' } }] },
    ]) {
      expect(await choiceFor(answer)).toMatchObject({ choice: 'Tech', asked: 1 })
    }
  })

  it('does not fool it with numbers or names in prose', async () => {
    const prose = [
      'Of the 2 options, number 1 is good.',
      '2',
      '{"choice": 2, "reason": "x"}',
      'I would rather not use Tech here.',
      'Triage\nTech',
      '{"choice": "tech", "reason": "another spelling"}',
    ]
    for (const answer of prose)
      expect(await choiceFor(answer, 'Triage')).toMatchObject({ choice: 'Triage', asked: 2 })
  })

  it('is quoted when it is asked again, and every round is paid for', async () => {
    const usage = { inputTokens: 10, outputTokens: 1 }
    const { session, model } = await choiceFor({ text: 'Well…', usage }, { text: 'Tech', usage })
    const [last] = model.calls[1]?.messages.at(-1)?.role === 'user' ? [model.calls[1]?.messages.at(-1)] : []
    expect(JSON.stringify(last)).toContain('You said \\"Well…\\"')
    expect(session.usage.totalTokens).toBe(22)
  })

  it('fails by name when it is no choice often enough, with what was spent on the record', async () => {
    const { selector, model } = selectorWith(() => 'I cannot say.', { limit: 2 })
    const error = await failureOf(selector.decide(ask(), triage, tech))
    expect(error.code).toBe('output-invalid')
    expect(error.message).toContain('asked 2 times')
    expect(error.message).toContain('"I cannot say."')
    expect(model.calls).toHaveLength(2)
    expect(kinds(error.session)).toEqual(['user', 'error'])
    expect(error.session.usage.totalTokens).toBeGreaterThan(0)
  })

  it('is asked for by a tool where output is refused, and as text where tools are too', async () => {
    const refused = { error: { status: 400, message: 'response_format is not supported' } }
    const { session, model, choice } = await choiceFor(refused, refused, 'Hm.', 'Tech')
    expect(choice).toBe('Tech')
    expect(model.calls.map(call => [call.output !== undefined, call.tools.length, call.toolChoice])).toEqual([
      [true, 0, undefined],
      [false, 1, { name: 'route' }],
      [false, 0, undefined],
      [false, 0, undefined],
    ])
    expect(kinds(session)).toEqual(['user', 'error', 'error', 'route'])
  })
})

describe('selecting inside a run', () => {
  class Desk extends Workflow {
    selector = selectorWith(() => ({ text: 'Tech', usage: { inputTokens: 60, outputTokens: 0 } })).selector
    async forward(start: Session) {
      let session = start
      for (let next = await this.selector(session, triage, tech); !(next instanceof EmptyWorkflow); ) {
        session = await next(session)
        next = await this.selector(session, triage, tech)
      }
      return session
    }
  }

  it('spends from its budget, and a spent one ends the loop with the session', async () => {
    const out = await new Desk()(ask(), { budget: { tokens: 100 } })
    expect(kinds(out)).toEqual(['user', 'route', 'note', 'route', 'note'])
  })

  it('is told in its events, without the words of the choice', async () => {
    const pending = new Desk()(ask(), { budget: { tokens: 50 } })
    const events = await eventsOf(pending)
    const chunks = events.flatMap(event => (event.type === 'chunk' ? [event] : []))
    expect(chunks[0]).toMatchObject({ by: 'Desk/selector', chunk: { kind: 'route', choice: 'Tech' } })
    expect(events.some(event => event.type === 'text-delta')).toBe(false)
    expect(chunks.at(-1)).toMatchObject({ chunk: { kind: 'route', choice: null } })
  })

  it('ends when it is cancelled', async () => {
    class Slow extends Workflow {
      selector = selectorWith([{ text: 'Tech', delayMs: 60_000 }]).selector
      async forward(session: Session) {
        return (await this.selector(session, tech))(session)
      }
    }
    const pending = new Slow()(ask())
    setImmediate(() => pending.cancel('enough'))
    expect((await failureOf(pending)).code).toBe('cancelled')
  })
})

describe('a selector refuses', () => {
  const { selector } = selectorWith([])

  it('candidates that cannot be chosen, all at once and by name', async () => {
    class Mute extends Workflow {
      forward = (session: Session) => session
    }
    const given = [new Mute(), 'tech' as unknown as Workflow, tech, tech]
    const { message } = await failureOf(selector.decide(ask(), ...given))
    expect(message).toContain('workflow 1, Mute, has no description')
    expect(message).toContain('workflow 2 is "tech"')
    expect(message).toContain('workflow 4, Tech, was given twice')
    await expect(selector(ask())).rejects.toThrow('it was given none')
  })

  it('a limit below one, and what is no session', async () => {
    expect(() => new Selector({ model: scripted([]), limit: 0 })).toThrow('limit must be a whole number')
    await expect(selector(7 as unknown as Session, tech)).rejects.toThrow('takes a message, a Session')
  })
})
