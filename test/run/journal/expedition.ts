import { join } from 'node:path'
import { Agent, type AgentOptions } from '../../../src/flow/agent.ts'
import { Parallel } from '../../../src/flow/containers.ts'
import { EmptyWorkflow } from '../../../src/flow/empty-workflow.ts'
import { Selector } from '../../../src/flow/selector.ts'
import { Workflow } from '../../../src/flow/workflow.ts'
import type { ModelRequest } from '../../../src/model/spec.ts'
import { effect } from '../../../src/run/forward.ts'
import type { Session } from '../../../src/session/session.ts'
import { type Answer, scripted } from '../../../src/testing/scripted.ts'
import type { Effect, Tool } from '../../../src/tool/spec.ts'
import { tool } from '../../../src/tool/tool.ts'

type Tell = (line: string) => void

/** Everything that a run of it touches lies in one folder. */
export const placesIn = (folder: string) => ({
  store: `sqlite:${join(folder, 'rath.db')}`,
  counter: join(folder, 'counter.txt'),
  project: join(folder, 'project'),
  workspaces: join(folder, 'workspaces'),
  memory: { backend: 'local', path: join(folder, 'memory') },
})

/** A model whose answer follows from the request alone, so that any process gives the same. */
function pure(tell: Tell, answer: (turns: number, request: ModelRequest) => Answer, id: string) {
  return scripted(
    request => {
      tell(`model ${id}`)
      return answer(turnsOf(request), request)
    },
    { id },
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
const writes = (path: string, content: string) => ({ name: 'write_workspace_file', args: { path, content } })
const edits = (path: string, old: string, other: string) => ({
  name: 'edit_workspace_file',
  args: { path, old, new: other },
})
/** In two steps, so that there is a moment in which the files are half-written, and with a process that would stay. */
const command = (path: string, text: string) => ({
  name: 'run_shell_command',
  args: {
    cmd: `(sleep 60; printf late > ${path}) & printf half > ${path}; sleep 0.02; printf %s '${text}' > ${path}`,
  },
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

/** Agents inside agents, branches side by side that edit files of their own, a selector's loop, a memory, and effects of every kind. */
export class Expedition extends Workflow {
  readonly scout: Agent
  readonly lead: Agent
  readonly left: Agent
  readonly right: Agent
  readonly scribe: Agent
  readonly select: Selector
  readonly #tell: Tell

  constructor(tell: Tell, count: Tell, memory: AgentOptions['memory'] = 'local') {
    super()
    this.#tell = tell
    const look = counting('look', 'read', tell, count)
    const pay = counting('pay', 'external', tell, count)
    const save = counting('save', 'idempotent', tell, count)
    const agent = (
      name: string,
      options: AgentOptions,
      answer: (turns: number, request: ModelRequest) => Answer,
    ) =>
      new Agent(`You are ${name}.`, {
        model: pure(tell, answer, `model/${name}`),
        builtins: false,
        name,
        description: `Does what ${name} does.`,
        ...options,
      })
    this.scout = agent('scout', { tools: [look, pay], builtins: true }, turns => {
      if (turns === 0) return named('look', 'hill', 'river')
      if (turns === 1) return named('pay', 'guide')
      if (turns === 2)
        return { toolCalls: [writes('map.txt', 'hill\n'), edits('map.txt', 'hill', 'hill, river')] }
      return turns === 3 ? { toolCalls: [command('fire.txt', 'out')] } : 'The way is clear.'
    })
    const ask = this.scout.asTool({ name: 'ask_scout', description: 'Asks the scout.' })
    this.lead = agent('lead', { tools: [ask] }, turns =>
      turns === 0 ? { toolCalls: [{ name: 'ask_scout', args: { request: 'Where to?' } }] } : 'On we go.',
    )
    this.left = agent('left', { tools: [save, pay, ask], builtins: true }, turns => {
      if (turns === 0) return named('save', 'a', 'b')
      if (turns === 1)
        return { toolCalls: [writes('left.txt', 'left\n'), edits('log.txt', 'first', 'FIRST')] }
      if (turns === 2) return named('pay', 'toll')
      if (turns === 3)
        return {
          toolCalls: [{ name: 'ask_scout', args: { request: 'And here?' } }, writes('after.txt', 'after\n')],
        }
      return turns === 4 ? { toolCalls: [command('camp.txt', 'left camp')] } : 'Left is done.'
    })
    this.right = agent('right', { tools: [look], builtins: true }, turns => {
      if (turns === 0) return named('look', 'sky')
      return turns === 1
        ? { toolCalls: [edits('log.txt', 'third', 'THIRD'), writes('right/deep.txt', 'right\n')] }
        : 'Right is done.'
    })
    this.scribe = agent(
      'scribe',
      // Entries have ids of their own, which the model would be shown, and the state cover.
      { memory, recall: { render: hits => hits.map(({ text }) => text).join('\n') }, commitOnForward: true },
      (_turns, { messages }) =>
        `I recall ${JSON.stringify(messages.at(-1)).includes('toll') ? 'the toll' : 'nothing'}.`,
    )
    const later = ['left', 'right', 'none']
    const select = (_turns: number, request: ModelRequest) => {
      const rounds = JSON.stringify(request.messages).split('Go on, ').length - 1
      return `{"reason":"it is time","choice":"${later[rounds]}"}`
    }
    this.select = new Selector({ model: pure(tell, select, 'model/select') })
  }

  async forward(session: Session) {
    let out = await this.lead(session)
    out = await new Parallel({ left: this.left, right: this.right })(out.user('Split up.'))
    this.#tell('merged')
    await this.scribe.remember('The toll on the left costs a coin.')
    const receipt = await effect('book', { for: out.text }, () => `booked ${out.text.length}`, {
      effect: 'idempotent',
    })
    out = await this.scribe(out.user(`${receipt}. What of the toll?`))
    for (let round = 0; ; round++) {
      const next = await this.select(out, this.right, this.left)
      if (next instanceof EmptyWorkflow) break
      out = await next(out.user(`Go on, ${round}.`))
    }
    const known = await this.scribe.recall('the toll')
    await this.scribe.commit(out)
    return this.scout(out.user(`Once more; ${known.length} notes say toll.`))
  }
}

/** One call that a person has to approve. */
export class Till extends Workflow {
  readonly agent: Agent

  constructor(tell: Tell, count: Tell) {
    super()
    const pay = { ...counting('pay', 'external', tell, count), approval: true }
    const model = pure(tell, turns => (turns === 0 ? named('pay', 'bread') : 'Paid.'), 'model/till')
    this.agent = new Agent('Pay.', { model, tools: [pay], builtins: false })
  }

  forward(session: Session) {
    return this.agent(session)
  }
}
