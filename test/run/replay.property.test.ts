import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { afterAll, expect, it } from 'vitest'
import { Agent } from '../../src/flow/agent.ts'
import { Parallel, Sequential } from '../../src/flow/containers.ts'
import { Selector } from '../../src/flow/selector.ts'
import { Workflow } from '../../src/flow/workflow.ts'
import type { ModelRequest } from '../../src/model/spec.ts'
import { createRuntime } from '../../src/run/runtime.ts'
import { Session } from '../../src/session/session.ts'
import { openStore } from '../../src/store/open.ts'
import type { JournalEntry } from '../../src/store/spec.ts'
import { scripted } from '../../src/testing/scripted.ts'
import { tool } from '../../src/tool/tool.ts'
import { torture } from '../support/torture.ts'

const folder = mkdtempSync(join(tmpdir(), 'openrath-replay-'))
afterAll(() => rmSync(folder, { recursive: true }))

/** A tree of what workflows can do with sessions. */
type Plan =
  | { readonly kind: 'say' }
  | { readonly kind: 'tools'; readonly calls: number }
  | { readonly kind: 'samples'; readonly count: number }
  | { readonly kind: 'files' }
  | { readonly kind: 'memory' }
  | { readonly kind: 'nested'; readonly inner: 'say' | 'tools' | 'files' }
  | { readonly kind: 'forks'; readonly parts: readonly Plan[] }
  | { readonly kind: 'parallel'; readonly parts: readonly Plan[] }
  | { readonly kind: 'select'; readonly parts: readonly Plan[] }
  | { readonly kind: 'then'; readonly parts: readonly Plan[] }

const { plan } = fc.letrec<{ plan: Plan }>(tie => {
  const parts = fc.array(tie('plan'), { minLength: 1, maxLength: 3 })
  const branch = (kind: 'forks' | 'parallel' | 'select' | 'then') =>
    fc.record({ kind: fc.constant(kind), parts })
  return {
    plan: fc.oneof(
      { maxDepth: 3, withCrossShrink: true },
      fc.constant({ kind: 'say' as const }),
      fc.record({ kind: fc.constant('tools' as const), calls: fc.integer({ min: 1, max: 3 }) }),
      fc.record({ kind: fc.constant('samples' as const), count: fc.integer({ min: 2, max: 3 }) }),
      fc.constant({ kind: 'files' as const }),
      fc.constant({ kind: 'memory' as const }),
      fc.record({
        kind: fc.constant('nested' as const),
        inner: fc.constantFrom('say' as const, 'tools' as const, 'files' as const),
      }),
      ...(['forks', 'parallel', 'select', 'then'] as const).map(branch),
    ),
  }
})

/**
 * Answers that differ from call to call, after delays that differ from seed to seed: what is said is a matter of the run, not of the input.
 * `limit` is how many branches work at a time.
 */
class World {
  #said = 0
  readonly #delays: readonly number[]
  readonly limit: number

  constructor({ delays, limit }: { readonly delays: readonly number[]; readonly limit: number }) {
    this.#delays = delays
    this.limit = limit
  }

  model(answer: (n: number, request: ModelRequest) => object) {
    return scripted(request => {
      const n = this.#said++
      return { ...answer(n, request), delayMs: this.#delays[n % this.#delays.length] as number }
    })
  }
}

function build(plan: Plan, world: World): Workflow {
  const options = { builtins: false } as const
  switch (plan.kind) {
    case 'say':
      return new Agent('Say.', { ...options, model: world.model(n => ({ text: `said ${n}` })) })
    case 'tools': {
      let ran = 0
      const roll = tool({
        name: 'roll',
        description: 'Rolls.',
        input: { type: 'object' },
        effect: 'read',
        run: () => ++ran,
      })
      const toolCalls = Array.from({ length: plan.calls }, () => ({ name: 'roll' }))
      const model = world.model((n, { messages }) =>
        messages.at(-1)?.role === 'tool' ? { text: `rolled ${n}` } : { toolCalls },
      )
      return new Agent('Roll.', { ...options, model, tools: [roll] })
    }
    case 'files': {
      const model = world.model((n, { messages }) => {
        if (messages.at(-1)?.role === 'tool') return { text: `wrote before ${n}` }
        const writes = (path: string) => ({ name: 'write_workspace_file', args: { path, content: `${n}` } })
        return { toolCalls: [writes(`${n}.txt`), writes(`deep/${n}.txt`)] }
      })
      return new Agent('Write.', { model, builtins: ['write_workspace_file'] })
    }
    case 'memory':
      return new Remembering(
        new Agent('Recall.', {
          ...options,
          model: world.model(n => ({ text: `recalled ${n}` })),
          memory: { backend: 'local', path: join(folder, 'memory') },
        }),
      )
    case 'nested': {
      const inner = build(plan.inner === 'tools' ? { kind: 'tools', calls: 1 } : { kind: plan.inner }, world)
      const model = world.model((n, { messages }) =>
        messages.at(-1)?.role === 'tool'
          ? { text: `heard ${n}` }
          : { toolCalls: [{ name: 'ask', args: { request: 'Do it.' } }] },
      )
      const tools = [(inner as Agent).asTool({ name: 'ask', description: 'Asks.' })]
      return new Agent('Ask.', { ...options, model, tools })
    }
    case 'samples':
      return new Samples(build({ kind: 'tools', calls: 2 }, world), plan.count)
    case 'forks':
      return new Forks(plan.parts.map(part => build(part, world)))
    case 'parallel':
      return new Parallel(
        plan.parts.map(part => build(part, world)),
        { limit: world.limit },
      )
    case 'select':
      return new Chooser(
        plan.parts.map(part => build(part, world)),
        new Selector({
          model: world.model(n => ({ text: `{"reason":"r","choice":"w${n % plan.parts.length}"}` })),
        }),
      )
    case 'then':
      return new Sequential(...plan.parts.map(part => build(part, world)))
  }
}

class Remembering extends Workflow {
  readonly agent: Agent
  constructor(agent: Agent) {
    super()
    this.agent = agent
  }
  async forward(session: Session) {
    await this.agent.remember(`Somebody went on from: ${session.text}`)
    return this.agent(session)
  }
}

class Samples extends Workflow {
  readonly part: Workflow
  readonly count: number
  constructor(part: Workflow, count: number) {
    super()
    this.part = part
    this.count = count
  }
  async forward(session: Session) {
    const made = await Promise.all(Array.from({ length: this.count }, () => this.part(session)))
    return session.user(made.map(one => one.text).join('|'))
  }
}

class Forks extends Workflow {
  readonly parts: readonly Workflow[]
  constructor(parts: readonly Workflow[]) {
    super()
    this.parts = parts
  }
  async forward(session: Session) {
    const forks = session.forks(this.parts.length)
    const [first, ...rest] = await Promise.all(this.parts.map((part, i) => part(forks[i] as Session)))
    return (first as Session).merge(rest.length > 0 ? rest : [session])
  }
}

class Chooser extends Workflow {
  readonly parts: readonly Workflow[]
  readonly selector: Selector
  constructor(parts: readonly Workflow[], selector: Selector) {
    super()
    this.parts = parts
    this.selector = selector
    for (const [i, part] of parts.entries()) {
      part.description = `Number ${i}.`
      Object.defineProperty(part, 'name', { value: `w${i}` })
    }
  }
  async forward(session: Session) {
    const next = await this.selector(session, ...this.parts)
    return next(session)
  }
}

const world = fc.record({
  delays: fc.array(fc.integer({ min: 0, max: 3 }), { minLength: 1, maxLength: 7 }),
  limit: fc.integer({ min: 1, max: 4 }),
})

/** One place for all runs: looking what the machine can do takes longer than a run. */
async function inFolder() {
  const store = await openStore('memory:')
  const runtime = createRuntime({ store, workspaces: join(folder, 'kept') })
  const start = () => Session.fromUserMessage('go').to('local', mkdtempSync(join(folder, 'project-')))
  return { store, runtime, start, [Symbol.asyncDispose]: () => runtime.close().then(() => store.close()) }
}

it('any run replays to the same state, whatever order its parts finish in and how many work at a time', async () => {
  await using here = await inFolder()
  const { runtime, start } = here
  const seen = new Set<string>()
  await fc.assert(
    fc.asyncProperty(plan, world, world, async (made, one, other) => {
      const pending = runtime.run(build(made, new World(one)), start())
      const out = await pending
      for (const chunk of out.chunks) seen.add(chunk.kind)
      if ([...out.chunks].some(chunk => chunk.kind === 'merge' && chunk.tree !== undefined))
        seen.add('merged files')
      if ([...out.chunks].some(chunk => chunk.kind === 'tool-result' && chunk.sessions !== undefined))
        seen.add('nested agent')
      const report = await runtime.replay(pending.runId, build(made, new World(other)))
      expect(report.divergence?.message).toBeUndefined()
      expect(report).toMatchObject({ ok: true, state: out.state, unasked: [] })
    }),
    { numRuns: torture({ short: 60, full: 200 }) },
  )
  // A hundred trees that hold none of one of these would be no test of it.
  for (const kind of ['merged files', 'nested agent', 'memory', 'tool-result', 'route'])
    expect(seen).toContain(kind)
})

it('a run begun twice with the same outcomes makes the same keys, in any order', async () => {
  await using here = await inFolder()
  const { runtime, store, start } = here
  await fc.assert(
    fc.asyncProperty(plan, world, world, async (made, one, other) => {
      const session = start()
      const first = runtime.run(build(made, new World(one)), session)
      await first
      const second = runtime.run(build(made, new World(other)), session, { reuse: first.runId })
      expect((await second).state).toBe((await first).state)
      // What was borrowed is not done, so that nothing is asked inside it.
      const isOutside = ({ kind, request }: JournalEntry) =>
        kind !== 'definition' && !/^[0-9a-f]{16}\./.test((request as { sample?: string }).sample ?? '')
      const keys = async (run: string) =>
        (await store.runs.journal(run))
          .filter(isOutside)
          .map(({ key, occurrence }) => `${key} ${occurrence}`)
          .sort()
      expect(await keys(second.runId)).toEqual(await keys(first.runId))
      // Agents as tools and merges of files are done again, with what was done inside them.
      const paid = (await store.runs.journal(second.runId)).filter(({ kind, request }) => {
        const { reused, request: asked } = request as { reused?: string; request?: { tool?: string } }
        const isOuter = kind === 'merge' || asked?.tool === 'ask'
        return kind !== 'definition' && reused === undefined && !isOuter
      })
      expect(paid).toEqual([])
    }),
    { numRuns: torture({ short: 15, full: 50 }) },
  )
})
