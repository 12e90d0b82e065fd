import { Agent } from '../../../src/flow/agent.ts'
import { EmptyWorkflow } from '../../../src/flow/empty-workflow.ts'
import { Parallel } from '../../../src/flow/parallel.ts'
import { Selector } from '../../../src/flow/selector.ts'
import { Workflow } from '../../../src/flow/workflow.ts'
import type { ModelRequest } from '../../../src/model/spec.ts'
import { effect } from '../../../src/run/effect.ts'
import { Session } from '../../../src/session/session.ts'
import { type Answer, scripted } from '../../../src/testing/scripted.ts'
import type { Effect, Tool } from '../../../src/tool/spec.ts'
import { tool } from '../../../src/tool/tool.ts'

type Tell = (line: string) => void

/** A model whose answer follows from the request alone, so that any process gives the same. */
function pure(tell: Tell, answer: (turns: number) => Answer, id?: string) {
  return scripted(
    request => {
      tell(`model ${id ?? ''}`)
      return answer(turnsOf(request))
    },
    id === undefined ? {} : { id },
  )
}

/** How often this agent has been answered by its tools since the last user message. */
function turnsOf({ messages }: ModelRequest): number {
  const start = messages.findLastIndex(message => message.role === 'user')
  return messages.slice(start).filter(message => message.role === 'assistant').length
}

const named = (name: string, ...tokens: string[]) => ({
  toolCalls: tokens.map(token => ({ name, args: { token } })),
})

function counting(name: string, kind: Effect, tell: Tell, count: Tell): Tool {
  return tool({
    name,
    description: name,
    input: { type: 'object', properties: { token: { type: 'string' } }, required: ['token'] },
    effect: kind,
    run: ({ token }: { token: string }) => {
      tell(`tool ${token}`)
      if (kind === 'external') count(token)
      tell(`after ${token}`)
      return `counted ${token}`
    },
  })
}

/** Agents inside tools, branches side by side, a selector's loop, and effects of every kind. */
export class Expedition extends Workflow {
  readonly scout: Agent
  readonly lead: Agent
  readonly left: Agent
  readonly right: Agent
  readonly select: Selector

  constructor(tell: Tell, count: Tell) {
    super()
    const look = counting('look', 'read', tell, count)
    const pay = counting('pay', 'external', tell, count)
    const save = counting('save', 'idempotent', tell, count)
    const agent = (name: string, tools: Tool[], answer: (turns: number) => Answer) =>
      new Agent(`You are ${name}.`, {
        model: pure(tell, answer, `model/${name}`),
        tools,
        builtins: false,
        name,
        description: `Does what ${name} does.`,
      })
    this.scout = agent('scout', [look, pay], turns =>
      turns === 0
        ? named('look', 'hill', 'river')
        : turns === 1
          ? named('pay', 'guide')
          : 'The way is clear.',
    )
    const ask: Tool = {
      ...tool({
        name: 'ask_scout',
        description: 'Asks the scout.',
        input: { type: 'object' },
        run: async () => (await this.scout(Session.fromUserMessage('Where to?'))).text,
      }),
      resumable: true,
    }
    this.lead = agent('lead', [ask], turns =>
      turns === 0 ? { toolCalls: [{ name: 'ask_scout' }] } : 'On we go.',
    )
    this.left = agent('left', [save, pay], turns =>
      turns === 0 ? named('save', 'a', 'b') : turns === 1 ? named('pay', 'toll') : 'Left is done.',
    )
    this.right = agent('right', [look], turns => (turns === 0 ? named('look', 'sky') : 'Right is done.'))
    this.select = new Selector({
      model: pure(tell, () => '{"reason":"it is time","choice":"right"}', 'model/select'),
    })
  }

  async forward(session: Session) {
    let out = await this.lead(session)
    out = await new Parallel({ left: this.left, right: this.right })(out.user('Split up.'))
    const receipt = await effect('book', { for: out.length }, () => `booked ${out.length}`, {
      effect: 'idempotent',
    })
    out = out.user(receipt)
    const next = await this.select(out, this.right, this.left)
    if (!(next instanceof EmptyWorkflow)) out = await next(out)
    return this.scout(out.user('Once more.'))
  }
}

/** One call that a person has to approve. */
export class Till extends Workflow {
  readonly agent: Agent

  constructor(tell: Tell, count: Tell) {
    super()
    const pay = { ...counting('pay', 'external', tell, count), approval: true }
    const model = pure(tell, turns => (turns === 0 ? named('pay', 'bread') : 'Paid.'))
    this.agent = new Agent('Pay.', { model, tools: [pay], builtins: false })
  }

  forward(session: Session) {
    return this.agent(session)
  }
}
