import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, it } from 'vitest'
import { Agent } from '../../src/flow/agent.ts'
import { map, Parallel } from '../../src/flow/containers.ts'
import { Workflow } from '../../src/flow/workflow.ts'
import type { ForwardContext } from '../../src/run/forward.ts'
import { createRuntime, type Runtime } from '../../src/run/runtime.ts'
import { Session } from '../../src/session/session.ts'
import { openStore } from '../../src/store/open.ts'
import { type Answer, scripted } from '../../src/testing/scripted.ts'
import { tool } from '../../src/tool/tool.ts'
import { torture } from '../support/torture.ts'
import { seeded } from './journal/drive.ts'

const folder = mkdtempSync(join(tmpdir(), 'openrath-resume-'))
afterAll(() => rmSync(folder, { recursive: true }))

// A run of the same seed makes the same programs.
const wanted = torture({ short: 20, full: 200 })
const seed = Number(process.env.OPENRATH_SEED ?? Math.floor(Math.random() * 2 ** 31))

/** A tree of what a program does side by side and one after the other. Each leaf that pays has names of its own. */
type Plan =
  | { readonly kind: 'pay' | 'nested' | 'drawn' | 'effect' | 'write'; readonly who: string }
  | { readonly kind: 'samples'; readonly who: string; readonly count: number }
  | { readonly kind: 'map'; readonly items: readonly string[] }
  | { readonly kind: 'all' | 'parallel' | 'then'; readonly parts: readonly Plan[] }

function planned(random: () => number): Plan {
  let named = 0
  const who = () => `p${named++}`
  const one = <T>(list: readonly T[]) => list[Math.floor(random() * list.length)] as T
  const make = (depth: number): Plan => {
    const leaf = () => {
      const kind = one(['pay', 'nested', 'drawn', 'effect', 'write', 'samples', 'map'] as const)
      if (kind === 'samples') return { kind, who: who(), count: 2 + Math.floor(random() * 2) }
      if (kind === 'map') return { kind, items: [who(), who(), who()] }
      return { kind, who: who() }
    }
    if (depth === 0 || random() < 0.25) return leaf()
    const parts = Array.from({ length: 2 + Math.floor(random() * 2) }, () => make(depth - 1))
    return { kind: one(['all', 'all', 'parallel', 'then'] as const), parts }
  }
  return { kind: 'all', parts: [make(2), make(1), make(1)] }
}

/** How often each is paid in a program that runs to its end. */
function owed(plan: Plan, sum: Record<string, number> = {}): Record<string, number> {
  switch (plan.kind) {
    case 'map':
      for (const who of plan.items) sum[who] = 1
      return sum
    case 'samples':
      sum[plan.who] = plan.count
      return sum
    case 'write':
      return sum
    case 'all':
    case 'parallel':
    case 'then':
      for (const part of plan.parts) owed(part, sum)
      return sum
    default:
      sum[plan.who] = 1
      return sum
  }
}

/** What happens outside: payments, delays that differ from drive to drive, and the answer at which this drive fails. */
class World {
  readonly paid: Record<string, number>
  readonly #random: () => number
  #answers = 0
  readonly #bomb: number

  constructor(paid: Record<string, number>, random: () => number, bomb: number) {
    this.paid = paid
    this.#random = random
    this.#bomb = bomb
  }

  pay(who: string): string {
    this.paid[who] = (this.paid[who] ?? 0) + 1
    return `paid ${who}`
  }

  delay(): Promise<unknown> {
    return new Promise(resolve => setTimeout(resolve, Math.floor(this.#random() * 6)))
  }

  /** The failure of an agent inside a tool is something that the agent outside reads: `isInner` never fails. */
  model(answer: (last: string, isTool: boolean) => Answer, isInner = false) {
    return scripted(async ({ messages }): Promise<Answer> => {
      await this.delay()
      if (!isInner && ++this.#answers === this.#bomb) return { error: { status: 400 } }
      const last = messages.at(-1)
      const text =
        last?.role === 'user' ? last.content.map(part => ('text' in part ? part.text : '')).join('') : ''
      return answer(text, last?.role === 'tool')
    })
  }
}

const once = { retry: { baseMs: 0 }, builtins: false } as const

/** Pays whoever the last message names. */
function payer(world: World, isInner: boolean): Agent {
  const pay = tool({
    name: 'pay',
    description: 'Pays somebody.',
    input: { type: 'object', properties: { who: { type: 'string' } }, required: ['who'] },
    effect: 'external',
    run: ({ who }: { who: string }) => world.pay(who),
  })
  const model = world.model(
    (last, isTool) =>
      isTool ? 'Paid.' : { toolCalls: [{ name: 'pay', args: { who: last.split(' ')[0] as string } }] },
    isInner,
  )
  return new Agent('Pay.', { ...once, model, tools: [pay] })
}

class Program extends Workflow {
  readonly plan: Plan
  readonly world: World
  readonly agent: Agent
  readonly parts: readonly Program[]

  constructor(plan: Plan, world: World) {
    super()
    this.plan = plan
    this.world = world
    this.parts = 'parts' in plan ? plan.parts.map(part => new Program(part, world)) : []
    this.agent = payer(world, plan.kind === 'nested')
    if (plan.kind === 'nested') {
      const tools = [this.agent.asTool({ name: 'ask', description: 'Asks.' })]
      const model = world.model((last, isTool) =>
        isTool ? 'Asked.' : { toolCalls: [{ name: 'ask', args: { request: last } }] },
      )
      this.agent = new Agent('Lead.', { ...once, model, tools })
    }
    if (plan.kind === 'write') {
      const model = world.model((last, isTool) =>
        isTool
          ? 'Written.'
          : { toolCalls: [{ name: 'write_workspace_file', args: { path: `${last}.txt`, content: last } }] },
      )
      this.agent = new Agent('Write.', { ...once, model, builtins: ['write_workspace_file'] })
    }
  }

  async forward(session: Session, context: ForwardContext): Promise<Session> {
    const { plan, world, agent, parts } = this
    await world.delay()
    switch (plan.kind) {
      case 'pay':
      case 'nested':
      case 'write':
        return agent(session.user(plan.who))
      case 'drawn':
        return agent(session.user(`${plan.who} ${await context.id()} ${await context.random('chance')}`))
      case 'effect':
        return session.user(await context.effect('pay', { who: plan.who }, () => world.pay(plan.who)))
      case 'samples': {
        const forks = session.forks(plan.count).map(async fork => {
          await world.delay()
          return (await agent(fork.user(plan.who))).text
        })
        return session.user((await Promise.all(forks)).join('|'))
      }
      case 'map':
        return map(session, plan.items, agent)
      case 'parallel':
        return new Parallel(parts)(session)
      case 'then': {
        let next = session
        for (const part of parts) next = await part(next)
        return next
      }
      case 'all': {
        // Forks without labels, made when their time has come.
        const made = parts.map(async (part, i) => {
          await world.delay()
          return part(session.fork().user(`part ${i}`))
        })
        const [first, ...rest] = (await Promise.all(made)) as [Session, ...Session[]]
        return first.merge(rest)
      }
    }
  }
}

/** A branch that is cancelled between its intent and its payment leaves the question whether it happened: a person looks. Nothing else may be asked. */
async function review(
  run: string,
  paid: World['paid'],
  runtime: Runtime,
  told: () => string,
): Promise<number> {
  const open = await runtime.unfinished(run)
  for (const { id, why, request } of open) {
    expect(why, told()).toBe('cut-off')
    const { who } = ((request as { args?: object }).args ?? request) as { who: string }
    const known = (await runtime.runs.journal(run)).filter(
      ({ outcome }) => outcome !== undefined && JSON.stringify(outcome).includes(`"paid ${who}"`),
    )
    const happened = (paid[who] ?? 0) > known.length
    await runtime.review(run, id, { happened, ...(happened && { result: `paid ${who}` }) })
  }
  return open.length
}

it(`programs that fail and are resumed ${wanted} times in another order pay everybody once, and replay`, async () => {
  const random = seeded(seed)
  await using store = await openStore('memory:')
  await using runtime = createRuntime({ store, workspaces: join(folder, 'kept') })
  let resumes = 0
  let reviews = 0
  let programs = 0
  for (; resumes < wanted; programs++) {
    const plan = planned(random)
    const told = () => `seed ${seed}, program ${programs}: ${JSON.stringify(plan)}`
    const paid: Record<string, number> = {}
    const drive = (bomb: number) =>
      new Program(plan, new World(paid, seeded(Math.floor(random() * 1e9)), bomb))
    const session = Session.fromUserMessage('go').to('local', mkdtempSync(join(folder, 'project-')))
    const pending = runtime.run(drive(1 + Math.floor(random() * 20)), session)
    let out = await pending.catch(error => error as Error & { code: string })
    for (let tries = 0; !(out instanceof Session); tries++) {
      const { code } = out as { code?: string }
      if (code === 'needs-review') reviews += await review(pending.runId, paid, runtime, told)
      else expect(code, told()).toMatch(/^(model-rejected|cancelled)$/)
      resumes++
      const bomb = tries < 2 ? 1 + Math.floor(random() * 20) : 0
      out = await runtime.resume(pending.runId, drive(bomb)).catch(error => error as Error & { code: string })
    }
    expect(paid, told()).toEqual(owed(plan))
    const report = await runtime.replay(pending.runId, drive(0))
    expect(report.divergence?.message, told()).toBeUndefined()
    expect(report, told()).toMatchObject({ ok: true, state: out.state })
    expect(paid, told()).toEqual(owed(plan))
  }
  console.log(`${resumes} resumes of ${programs} programs, with ${reviews} reviews; seed ${seed}`)
})
