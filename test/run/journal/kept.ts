import { Agent } from '../../../src/flow/agent.ts'
import { Parallel } from '../../../src/flow/containers.ts'
import { Workflow } from '../../../src/flow/workflow.ts'
import type { ForwardContext } from '../../../src/run/forward.ts'
import type { Session } from '../../../src/session/session.ts'
import { type Answer, scripted } from '../../../src/testing/scripted.ts'
import { tool } from '../../../src/tool/tool.ts'

/** What test/fixtures/runs-v1.json is a record of. Prompts, tools and calls are as they were then: do not edit them. */
export const kept = ['samples', 'files', 'approval', 'payments'] as const

/** `live` gives the models their answers; without it none is asked. `charged` is told of each charge. */
export function keptWorkflow(
  name: (typeof kept)[number],
  live: boolean,
  charged: (who: string) => void = () => {},
): Workflow {
  return new workflows[name](live, charged)
}

/** What makes a session say something different each time it is asked. */
let said = 0

function agent(prompt: string, answer: (last: string, isTool: boolean) => Answer, live: boolean, more = {}) {
  const model = scripted(
    live
      ? ({ messages }) => {
          const last = messages.at(-1)
          const text =
            last?.role === 'user' ? last.content.map(part => ('text' in part ? part.text : '')).join('') : ''
          return answer(text, last?.role === 'tool')
        }
      : [],
  )
  return new Agent(prompt, { model, builtins: false, ...more })
}

/** Forks without labels, equal calls side by side, an agent inside a tool, chance and an effect. */
class Samples extends Workflow {
  readonly writer: Agent
  readonly boss: Agent

  constructor(live: boolean) {
    super()
    this.writer = agent('Write.', () => `sample ${said++}`, live)
    const helper = agent('Help.', () => `help ${said++}`, live)
    const calls = { toolCalls: [{ name: 'help', args: { request: 'Do it.' } }] }
    this.boss = agent('Lead.', (_, isTool) => (isTool ? 'Led.' : calls), live, {
      tools: [helper.asTool({ name: 'help', description: 'Helps.' })],
    })
  }

  async forward(session: Session, context: ForwardContext) {
    const forks = await Promise.all(session.forks(3).map(fork => this.writer(fork)))
    const same = await Promise.all([this.writer(session), this.writer(session)])
    const side = await new Parallel([this.writer, this.boss])(session)
    const drawn = [await context.id(), await context.random(), await context.id()]
    const published = await context.effect('publish', { to: 'all' }, () => `published ${said++}`)
    const [first, ...rest] = forks as [Session, ...Session[]]
    const texts = [...same.map(one => one.text), side.text, ...drawn, published]
    return (await first.merge(rest)).user(texts.join('|'))
  }
}

/** Files, on the root and on branches without labels, and their merge. */
class Files extends Workflow {
  readonly writer: Agent

  constructor(live: boolean) {
    super()
    const answer = (last: string, isTool: boolean): Answer =>
      isTool
        ? 'Written.'
        : {
            toolCalls: [
              { name: 'write_workspace_file', args: { path: `${last}.txt`, content: last } },
              { name: 'read_workspace_file', args: { path: 'plan.txt' } },
            ],
          }
    this.writer = agent('Write files.', answer, live, {
      builtins: ['write_workspace_file', 'read_workspace_file'],
    })
  }

  async forward(session: Session) {
    const planned = await this.writer(session.user('plan'))
    const [left, right] = await Promise.all(
      ['left', 'right'].map(side => this.writer(planned.fork().user(side))),
    )
    return this.writer((await (left as Session).merge(right as Session)).user('done'))
  }
}

/** A call that a person approved in between. */
class Approval extends Workflow {
  readonly clerk: Agent

  constructor(live: boolean, charged: (who: string) => void) {
    super()
    const calls = { toolCalls: [{ name: 'charge', args: { who: 'ann' } }] }
    this.clerk = agent('Charge.', (_, isTool) => (isTool ? 'Charged.' : calls), live, {
      tools: [{ ...charge(charged), approval: true }],
    })
  }

  forward(session: Session) {
    return this.clerk(session)
  }
}

/** Two payments on forks without labels, and an agent behind them that failed. */
class Payments extends Workflow {
  readonly clerk: Agent
  readonly last: Agent

  constructor(live: boolean, charged: (who: string) => void) {
    super()
    const answer = (who: string, isTool: boolean): Answer =>
      isTool ? 'Charged.' : { toolCalls: [{ name: 'charge', args: { who } }] }
    this.clerk = agent('Charge.', answer, live, { tools: [charge(charged)] })
    const model = scripted(live ? [{ error: { status: 400 } }] : ['All charged.'])
    this.last = new Agent('Sum up.', { model, builtins: false, retry: { baseMs: 0 } })
  }

  async forward(session: Session) {
    const [ann, bob] = await Promise.all(['ann', 'bob'].map(who => this.clerk(session.fork().user(who))))
    return this.last(await (ann as Session).merge(bob as Session))
  }
}

function charge(charged: (who: string) => void) {
  return tool({
    name: 'charge',
    description: 'Charges somebody.',
    input: { type: 'object', properties: { who: { type: 'string' } }, required: ['who'] },
    effect: 'external',
    run: ({ who }: { who: string }) => {
      charged(who)
      return `charged ${who}`
    },
  })
}

const workflows = { samples: Samples, files: Files, approval: Approval, payments: Payments }
