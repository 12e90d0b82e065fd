import { inspect } from 'node:util'
import { describe, expect, it } from 'vitest'
import { Agent } from '../../src/flow/agent.ts'
import { EmptyWorkflow } from '../../src/flow/empty-workflow.ts'
import { Selector } from '../../src/flow/selector.ts'
import { Workflow } from '../../src/flow/workflow.ts'
import { Provider } from '../../src/model/provider.ts'
import type { Session } from '../../src/session/session.ts'
import { scripted } from '../../src/testing/scripted.ts'
import { ask, echo, eventsOf, failureOf } from '../run/make.ts'

const agent = (options: object = {}) =>
  new Agent('Be brief.', { model: scripted(() => 'done'), builtins: false, ...options })

class Leaf extends Workflow {
  forward(session: Session): Session {
    return session
  }
}

class Holder extends Workflow {
  field: unknown

  constructor(field: unknown) {
    super()
    this.field = field
  }

  forward(session: Session): Session {
    return session
  }
}

describe('children', () => {
  it('are found in fields, arrays, maps, sets and plain objects, however deep', () => {
    const [a, b, c, d, e] = Array.from({ length: 5 }, () => new Leaf()) as [Leaf, Leaf, Leaf, Leaf, Leaf]
    class Team extends Workflow {
      lead = a
      list = [b, 'text', { deep: c }]
      table = new Map<unknown, unknown>([['d', d]])
      group = new Set([e])
      forward(session: Session) {
        return session
      }
    }
    expect([...new Team().namedChildren()]).toEqual([
      ['lead', a],
      ['list.0', b],
      ['list.2.deep', c],
      ['table.d', d],
      ['group.0', e],
    ])
  })

  it('are not looked for in sessions, models, other classes, functions or getters', () => {
    class Box {
      inside = new Leaf()
    }
    const made = () => new Leaf()
    const model = { id: 'a/b', answer: () => Promise.reject(new Error('no')), helper: new Leaf() }
    const held = { session: ask(), box: new Box(), made, model, nothing: null }
    Object.defineProperty(held, 'lazy', { enumerable: true, get: () => new Leaf() })
    expect(new Holder(held).namedChildren().size).toBe(0)
  })

  it('that follow a plain object which holds itself are found once', () => {
    const loop: Record<string, unknown> = { leaf: new Leaf() }
    loop.self = loop
    expect([...new Holder(loop).namedChildren().keys()]).toEqual(['field.leaf'])
  })

  it('are read again after a field changes', () => {
    const holder = new Holder(new Leaf())
    expect([...holder.namedChildren().keys()]).toEqual(['field'])
    holder.field = undefined
    expect(holder.namedChildren().size).toBe(0)
  })

  it('include a Selector, and agents that are tools of an agent', () => {
    const selector = new Selector({ model: scripted([]) })
    const expert = agent({ name: 'expert' })
    const boss = agent({ tools: [expert.asTool({ name: 'ask_expert', description: 'Knows.' })] })
    const top = new Holder({ selector, boss })
    expect([...top.namedModules()]).toEqual([
      ['', top],
      ['field.selector', selector],
      ['field.boss', boss],
      ['field.boss.tools.ask_expert', expert],
    ])
  })
})

describe('namedModules', () => {
  it('lists the root under the empty path and what is shared under each of its paths', () => {
    const shared = new Holder(new Leaf())
    const top = new Holder([shared, shared])
    expect([...top.namedModules().keys()]).toEqual(['', 'field.0', 'field.0.field', 'field.1'])
    expect(top.namedModules().get('field.1')).toBe(shared)
  })

  it('stays linear where everything is held twice', () => {
    let top: Workflow = new Leaf()
    for (let i = 0; i < 200; i++) top = new Holder([top, top])
    expect(top.namedModules().size).toBe(401)
    expect(String(top).split('\n').length).toBeLessThan(1000)
  })

  it('goes ten thousand levels deep', () => {
    let top: Workflow = new Leaf()
    for (let i = 0; i < 10_000; i++) top = new Holder(top)
    expect(top.namedModules().size).toBe(10_001)
  })

  it('refuses a workflow that holds itself, and names the way round', () => {
    const inner = new Holder(undefined)
    const middle = new Holder([inner])
    inner.field = middle
    const top = new Holder(middle)
    for (const walk of [
      () => top.namedModules(),
      () => top.to('openai/gpt-5.5'),
      () => JSON.stringify(top),
    ]) {
      expect(walk).toThrow(expect.objectContaining({ code: 'graph-cycle' }))
      expect(walk).toThrow('field → field.0 → field')
    }
    expect(String(top)).toContain('holds itself: field → field.0 → field')
  })
})

describe('the print', () => {
  class Readme extends Workflow {
    agent = agent({ tools: [echo], name: 'counter' })
    steps = [new Leaf(), new Holder(new Leaf())]
    forward(session: Session) {
      return this.agent(session)
    }
  }

  it('is the tree in the way of torch', () => {
    expect(String(new Readme())).toBe(
      [
        'Readme(',
        '  (agent): Agent(scripted/model, tools: echo)',
        '  (steps.0): Leaf()',
        '  (steps.1): Holder(',
        '    (field): Leaf()',
        '  )',
        ')',
      ].join('\n'),
    )
    expect(inspect(new Readme())).toBe(String(new Readme()))
    expect(inspect({ leaf: new Leaf() })).toBe('{ leaf: Leaf() }')
  })

  it('says that all built-in tools are there without listing them', () => {
    const all = new Agent('', { model: scripted([]) })
    expect(String(all)).toBe('Agent(scripted/model, tools: built-ins)')
    const some = new Agent('', { model: scripted([]), builtins: ['run_code'] })
    expect(String(some)).toBe('Agent(scripted/model, tools: run_code)')
  })

  it('shows a shared branch once and refers to it', () => {
    const shared = new Holder(new Leaf())
    expect(String(new Holder([shared, shared]))).toContain('(field.1): Holder(the same as (field.0))')
  })

  it('is data as JSON', () => {
    expect(JSON.parse(JSON.stringify(new Holder(agent({ name: 'writer', description: 'Writes.' }))))).toEqual(
      {
        type: 'Holder',
        name: 'Holder',
        description: '',
        children: { field: { type: 'Agent', name: 'writer', description: 'Writes.', children: {} } },
      },
    )
  })
})

describe('to', () => {
  it('gives every model in the tree another, and returns the workflow', async () => {
    class Team extends Workflow {
      writer = agent()
      choose = new Selector({ model: scripted([]) })
      judge = new Judge()
      forward(session: Session) {
        return this.writer(session)
      }
    }
    class Judge extends Workflow {
      model: unknown = 'openai/gpt-5.5'
      forward(session: Session) {
        return session
      }
    }
    const team = new Team()
    const model = scripted(() => 'from the new one', { id: 'scripted/new' })
    expect(team.to(model)).toBe(team)
    expect(team.writer.model.id).toBe('scripted/new')
    expect(team.choose.model.id).toBe('scripted/new')
    expect(team.judge.model).toMatchObject({ id: 'scripted/new' })
    expect((await team(ask())).text).toBe('from the new one')
    expect(model.calls).toHaveLength(1)
  })

  it('refuses what is not a model before it changes anything', () => {
    const one = agent()
    expect(() => one.to(5 as never)).toThrow('is not a model')
    expect(one.model.id).toBe('scripted/model')
  })
})

describe('an agent as a parameter', () => {
  it('has its prompt as a session, its provider and its memory', () => {
    const provider = new Provider({ model: 'gpt-5.5' })
    const one = new Agent('Be brief.', { provider })
    expect(one.param.session.chunks.at(0)?.text).toBe('Be brief.')
    expect(one.param.provider).toBe(provider)
    expect(one.param.memory).toBeUndefined()
    expect(agent().param.provider).toMatchObject({ id: 'scripted/model' })
  })

  it('is collected over the tree by path', () => {
    const top = new Holder({ a: agent(), more: [new Holder(agent())] })
    expect([...top.namedAgents().keys()]).toEqual(['field.a', 'field.more.0.field'])
    expect([...agent().namedAgents().keys()]).toEqual([''])
  })
})

describe('the producer path', () => {
  it('has a child under the name its parent holds it by, unless it has a name of its own', async () => {
    class Review extends Workflow {
      writer = agent()
      critics = [agent(), agent({ name: 'Ada' })]
      forward(session: Session) {
        return this.critics[1]?.(this.critics[0]?.(this.writer(session)) as never) as Promise<Session>
      }
    }
    const pending = new Review()(ask())
    const ends = (await eventsOf(pending)).filter(event => event.type === 'run-end')
    expect(ends.map(event => event.by)).toEqual(['Review/writer', 'Review/critics.0', 'Review/Ada', 'Review'])
    expect((await pending).chunks.map(chunk => chunk.by)).toEqual([
      undefined,
      'Review/writer',
      'Review/critics.0',
      'Review/Ada',
    ])
  })

  it('falls back to the class for a child that nobody holds', async () => {
    const stray = agent()
    class Review extends Workflow {
      forward(session: Session) {
        return stray(session)
      }
    }
    expect((await new Review()(ask())).chunks.at(-1)?.by).toBe('Review/Agent')
  })
})

describe('an instance', () => {
  it('is of its class for instanceof and for whoever prints it, and not a function', () => {
    const leaf = new Leaf()
    expect(leaf).toBeInstanceOf(Leaf)
    expect(leaf).toBeInstanceOf(Workflow)
    expect(leaf).not.toBeInstanceOf(EmptyWorkflow)
    expect(Object.prototype.toString.call(leaf)).toBe('[object Leaf]')
    expect(leaf.name).toBe('Leaf')
    expect(leaf).not.toHaveProperty('length')
    expect(leaf).not.toHaveProperty('prototype')
    expect(Object.keys(leaf)).toEqual(['description'])
  })

  it('may have fields called length, name and prototype', () => {
    class Odd extends Leaf {
      override length = 3
      override name = 'odd'
      override prototype = 'first'
    }
    const odd = new Odd()
    expect([odd.length, odd.name, odd.prototype]).toEqual([3, 'odd', 'first'])
  })

  it('cannot be cloned, and the error says so', () => {
    expect(() => structuredClone(new Leaf())).toThrow(expect.objectContaining({ name: 'DataCloneError' }))
    expect(() => structuredClone(new Leaf())).toThrow(/^workflow\(input, options.*could not be cloned/s)
  })

  it('without a forward says so when it is called', async () => {
    class Forgetful extends (Workflow as unknown as new () => Leaf) {}
    const error = await failureOf(new Forgetful()(ask()))
    expect(error.message).toContain('Forgetful has no forward(session) method')
    expect(error.code).toBe('invalid-argument')
  })

  it('refuses what is not a session, and a forward that returns none', async () => {
    expect(() => new Leaf()(7 as never)).toThrow('Leaf takes a message, a Session or a pending one, not 7')
    class Nothing extends Workflow {
      forward() {
        return undefined as unknown as Session
      }
    }
    expect((await failureOf(new Nothing()(ask()))).message).toContain('must return a Session, not undefined')
  })
})
