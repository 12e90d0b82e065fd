import { randomUUID } from 'node:crypto'
import { setImmediate } from 'node:timers/promises'
import { Agent } from '../../../src/flow/agent.ts'
import { map, Parallel, Sequential } from '../../../src/flow/containers.ts'
import { Workflow } from '../../../src/flow/workflow.ts'
import type { ModelRequest } from '../../../src/model/spec.ts'
import type { ForwardContext } from '../../../src/run/forward.ts'
import type { MemoryLike } from '../../../src/run/memory/memories.ts'
import type { Session } from '../../../src/session/session.ts'
import { type Answer, scripted } from '../../../src/testing/scripted.ts'
import { tool } from '../../../src/tool/tool.ts'
import { type Plan, tokensOf } from './plan.ts'

/** What surrounds a program: it counts what is done, for itself, and decides how long everything takes. */
export interface World {
  /** Writes down that something was done. It may end the process, or never return. */
  count(what: 'answer' | 'pay' | 'mail', step: number): void | Promise<void>
  /** How many turns of the event loop the next thing takes. */
  delay(): number
  /** Whether the answer of this step fails, this time. */
  fails(step: number): boolean
  readonly memory: MemoryLike
}

/** The workflow that does what a plan says. */
export function build(plan: Plan, world: World): Workflow {
  const { n } = plan
  switch (plan.kind) {
    case 'say':
      return agent(n, world, () => `said ${n}`)
    case 'write': {
      const path = `${n}.txt`
      const write = { toolCalls: [{ name: 'write_workspace_file', args: { path, content: `by ${n}\n` } }] }
      return agent(n, world, turns => (turns === 0 ? write : `wrote ${n}`), {
        builtins: ['write_workspace_file'],
      })
    }
    case 'pay':
      return agent(
        n,
        world,
        turns => (turns === 0 ? { toolCalls: [{ name: 'pay', args: { step: n } }] } : `paid ${n}`),
        { tools: [payTool(world, plan.asks)] },
      )
    case 'boss': {
      const tools = plan.parts.map((part, i) =>
        (build(part, world) as Agent).asTool({ name: `ask_${i}`, description: `Asks number ${i}.` }),
      )
      const toolCalls = tools.map(({ name }) => ({ name, args: { request: `Do it for ${n}.` } }))
      return agent(n, world, turns => (turns === 0 ? { toolCalls } : `heard ${n}`), { tools })
    }
    case 'mail':
      return new Mail(n, world)
    case 'draw':
      return new Draw(
        n,
        agent(n, world, () => `drew ${n}`),
      )
    case 'remember':
      return new Remember(
        n,
        agent(n, world, () => `recalled ${n}`, { memory: world.memory }),
      )
    case 'nested':
      return new Nested(build(plan.part, world))
    case 'forks':
      return new Forks(
        world,
        plan.parts.map(part => build(part, world)),
      )
    case 'samples':
      return new Samples(world, build(plan.part, world), plan.count)
    case 'parallel':
      return new Parallel(plan.parts.map(part => build(part, world)))
    case 'map':
      return new Items(build(plan.part, world), plan.count)
    case 'then':
      return new Sequential(...plan.parts.map(part => build(part, world)))
  }
}

const turns = async (count: number) => {
  for (let i = 0; i < count; i++) await setImmediate()
}

function agent(
  n: number,
  world: World,
  answer: (turns: number) => Answer,
  options: Partial<ConstructorParameters<typeof Agent>[1]> = {},
): Agent {
  const model = scripted(
    async request => {
      await turns(world.delay())
      if (world.fails(n)) throw new Error(`the model of ${n} is away`)
      await world.count('answer', n)
      const given = answer(turnsOf(request))
      const totalTokens = tokensOf(n)
      const usage = { inputTokens: totalTokens - 7, outputTokens: 7, totalTokens }
      // No two answers of a real model are the same to the last token and millisecond; those would be one chunk.
      const text = `${typeof given === 'string' ? given : 'calling'} ${randomUUID()}`
      return { ...(typeof given === 'string' ? {} : given), text, usage }
    },
    { id: `model/${n}` },
  )
  return new Agent(`You are number ${n}.`, {
    model,
    name: `a${n}`,
    builtins: false,
    retry: { attempts: 1 },
    ...options,
  })
}

/** How often this agent has answered since it was asked. */
function turnsOf({ messages }: ModelRequest): number {
  const start = messages.findLastIndex(message => message.role === 'user')
  const results = messages.slice(start + 1).filter(message => message.role === 'tool')
  return messages.at(-1)?.role === 'tool' && results.length > 0 ? 1 : 0
}

function payTool(world: World, asks: boolean) {
  return tool({
    name: 'pay',
    description: 'Pays.',
    input: { type: 'object', properties: { step: { type: 'number' } }, required: ['step'] },
    ...(asks && { approval: true }),
    run: async ({ step }: { step: number }) => {
      await turns(world.delay())
      await world.count('pay', step)
      return `receipt of ${step}`
    },
  })
}

class Mail extends Workflow {
  readonly #n: number
  readonly #world: World
  constructor(n: number, world: World) {
    super()
    this.#n = n
    this.#world = world
  }
  async forward(session: Session, context: ForwardContext) {
    const sent = await context.effect('mail', { step: this.#n }, async () => {
      await turns(this.#world.delay())
      await this.#world.count('mail', this.#n)
      return `mail ${this.#n}`
    })
    return session.user(sent)
  }
}

class Draw extends Workflow {
  readonly agent: Agent
  readonly #n: number
  constructor(n: number, drawer: Agent) {
    super()
    this.agent = drawer
    this.#n = n
  }
  async forward(session: Session, context: ForwardContext) {
    return this.agent(session.user(`number ${this.#n} drew ${await context.id()}`))
  }
}

class Remember extends Workflow {
  readonly agent: Agent
  readonly #n: number
  constructor(n: number, one: Agent) {
    super()
    this.agent = one
    this.#n = n
  }
  async forward(session: Session) {
    await this.agent.remember(`Number ${this.#n} was here.`)
    return this.agent(session)
  }
}

class Nested extends Workflow {
  readonly part: Workflow
  constructor(part: Workflow) {
    super()
    this.part = part
  }
  forward(session: Session) {
    return this.part(session)
  }
}

class Forks extends Workflow {
  readonly parts: readonly Workflow[]
  readonly #world: World
  constructor(world: World, parts: readonly Workflow[]) {
    super()
    this.parts = parts
    this.#world = world
  }
  async forward(session: Session) {
    const done = await Promise.all(
      this.parts.map(async part => {
        // Forked when its turn comes: in another order each time.
        await turns(this.#world.delay())
        return part(session.fork())
      }),
    )
    const [first, ...rest] = done as [Session, ...Session[]]
    return first.merge(rest)
  }
}

/** Equal askers: only the order in which they were forked tells them apart, so that is no matter of time. */
class Samples extends Workflow {
  readonly part: Workflow
  readonly #world: World
  readonly #count: number
  constructor(world: World, part: Workflow, count: number) {
    super()
    this.part = part
    this.#world = world
    this.#count = count
  }
  async forward(session: Session) {
    const made = session.forks(this.#count).map(async fork => {
      await turns(this.#world.delay())
      return this.part(fork)
    })
    const [first, ...rest] = (await Promise.all(made)) as [Session, ...Session[]]
    return first.merge(rest)
  }
}

class Items extends Workflow {
  readonly part: Workflow
  readonly #count: number
  constructor(part: Workflow, count: number) {
    super()
    this.part = part
    this.#count = count
  }
  forward(session: Session) {
    const items = Array.from({ length: this.#count }, (_, i) => `Item ${i}.`)
    return map(session, items, this.part)
  }
}
