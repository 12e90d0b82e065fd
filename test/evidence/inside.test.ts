import { createHash } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { bundleLine } from '../../src/evidence/bundle/format.ts'
import { importBundle } from '../../src/evidence/bundle/import.ts'
import { readBundle } from '../../src/evidence/bundle/read.ts'
import { verifyBundle } from '../../src/evidence/bundle/verify.ts'
import { writeBundle } from '../../src/evidence/bundle/write.ts'
import { dossierOf } from '../../src/evidence/dossier/dossier-of.ts'
import { dossierHtml } from '../../src/evidence/dossier/html/page.ts'
import { dossierMarkdown } from '../../src/evidence/dossier/markdown.ts'
import { toATIF } from '../../src/evidence/exports/atif.ts'
import { Agent } from '../../src/flow/agent.ts'
import { Workflow } from '../../src/flow/workflow.ts'
import { effect, type ForwardContext } from '../../src/run/forward.ts'
import { createRuntime, type Runtime } from '../../src/run/runtime.ts'
import { seal } from '../../src/session/jsonl/format.ts'
import { Session } from '../../src/session/session.ts'
import { openStore } from '../../src/store/open.ts'
import { scripted } from '../../src/testing/scripted.ts'
import { tool } from '../../src/tool/tool.ts'
import { textOf } from './make.ts'

// What a person would want to see proven: a boss has a payer pay 5000, a person approves it, and a mail goes out.

let runtime: Runtime
let paid: number[]
let mails: number

beforeEach(() => {
  runtime = createRuntime({ store: 'memory:', workspaces: false })
  paid = []
  mails = 0
})

afterEach(async () => {
  vi.useRealTimers()
  await runtime.close()
})

const pay = () =>
  tool({
    name: 'pay',
    description: 'Pays.',
    input: { type: 'object', properties: { amount: { type: 'number' } } },
    approval: true,
    run: ({ amount }: { amount: number }) => {
      paid.push(amount)
      return `paid ${amount}`
    },
  })

class Office extends Workflow {
  payer = new Agent('You pay.', {
    name: 'payer',
    tools: [pay()],
    model: scripted([
      {
        toolCalls: [{ name: 'pay', args: { amount: 5000 } }],
        usage: { inputTokens: 4000, outputTokens: 1000, cost: 0.5 },
      },
      { text: 'paid', usage: { inputTokens: 4000, outputTokens: 1000, cost: 0.5 } },
    ]),
  })
  boss = new Agent('You decide.', {
    name: 'boss',
    tools: [this.payer.asTool({ name: 'ask_payer', description: 'Pays.' })],
    model: scripted([
      {
        toolCalls: [{ name: 'ask_payer', args: { request: 'pay 5000' } }],
        usage: { inputTokens: 9, outputTokens: 2, cost: 0.001 },
      },
      { text: 'done', usage: { inputTokens: 9, outputTokens: 2, cost: 0.001 } },
    ]),
  })

  async forward(session: Session, context: ForwardContext) {
    const out = await this.boss(session)
    await context.effect('send-mail', { to: 'ann' }, () => {
      mails++
      return 'sent'
    })
    return out
  }
}

const approved = { verdict: 'approved', by: 'ann', reason: 'fine' } as const

/** Run, parked on the approval, decided and resumed; `pause` between. */
async function parked(pause: () => void = () => {}): Promise<Session> {
  const office = new Office()
  const input = Session.fromUserMessage('Pay the rent.')
  await expect(runtime.run(office, input, { id: 'r' })).rejects.toMatchObject({ code: 'run-waiting' })
  const [open] = await runtime.approvals('r')
  pause()
  await runtime.decide('r', open?.approval as string, approved)
  pause()
  return runtime.resume('r', office)
}

const inOne = () =>
  runtime.run(new Office(), Session.fromUserMessage('Pay the rent.'), { id: 'r', approve: () => approved })

const ways = [
  ['in one go', inOne],
  ['resumed after it was parked', () => parked()],
] as const

describe.each(ways)('%s', (_, make) => {
  test('usage is what everybody spent, and ownUsage what its own model calls did', async () => {
    const out = await make()
    expect(paid).toEqual([5000])
    expect(mails).toBe(1)
    expect(out.usage.totalTokens).toBe(10_022)
    expect(out.usage.cost).toBeCloseTo(1.002)
    expect(out.ownUsage.totalTokens).toBe(22)
    expect(out.ownUsage.cost).toBeCloseTo(0.002)
  })

  test('the tool result names the session of the sub-agent, which the store has', async () => {
    const out = await make()
    const result = out.chunks.find(chunk => chunk.kind === 'tool-result')
    expect(result?.usage?.totalTokens).toBe(10_000)
    const [link, ...others] = result?.sessions ?? []
    expect(others).toEqual([])
    const sub = await runtime.sessions.get(link?.session as string)
    expect(sub.head).toBe(link?.head)
    expect(sub.usage.totalTokens).toBe(10_000)
    expect(sub.text).toBe('paid')
    expect([...sub.chunks].map(chunk => chunk.kind)).toContain('approval')
  })

  test('an effect of the user’s own is on the record of the call that made it', async () => {
    const out = await make()
    expect([...out.chunks].filter(chunk => chunk.kind === 'effect')).toMatchObject([
      {
        name: 'send-mail',
        by: 'Office',
        request: { to: 'ann' },
        outcome: { kind: 'value', value: 'sent' },
        effect: 'external',
      },
    ])
    expect(out.text).toBe('done')
    expect(out.verify().ok).toBe(true)
    expect(Session.fromJSONL(out.toJSONL()).head).toBe(out.head)
  })

  test('dossier, report and session agree, and everything is counted once', async () => {
    const out = await make()
    const dossier = await dossierOf(await runtime.store, 'r')
    expect(dossier.spending.total.totalTokens).toBe(10_022)
    expect(dossier.spending.agents.map(({ name, answers }) => [name, answers])).toEqual([
      ['Office/boss/payer', 2],
      ['Office/boss', 2],
    ])
    expect(dossier.approvals).toMatchObject([{ tool: 'pay', verdict: 'approved', decidedBy: 'ann' }])
    expect(dossier.tools.map(({ name, calls }) => [name, calls])).toEqual(
      expect.arrayContaining([
        ['pay', 1],
        ['ask_payer', 1],
      ]),
    )
    expect(dossier.effects).toMatchObject([{ name: 'send-mail', outcome: 'value' }])
    expect(dossier.prompts).toHaveLength(2)
    const answers = dossier.steps.filter(step => step.kind === 'assistant')
    expect(answers).toHaveLength(4)
    const report = await runtime.report('r')
    expect(report.paid.tokens).toBe(out.usage.totalTokens)
    expect(report.paid.cost).toBeCloseTo(out.usage.cost as number)
    expect(report.kinds.model?.paid.calls).toBe(4)
    const bySession = await dossierOf(await runtime.store, out.id)
    expect(bySession.spending.total.totalTokens).toBe(10_022)
  })

  test('the graph has each session once, and the sub-agent’s is linked to the call', async () => {
    const out = await make()
    const graph = await runtime.graph('r')
    const made = graph.nodes.map(({ lineage }) => lineage.by ?? lineage.operation)
    expect(made.toSorted()).toEqual(['Office', 'Office/boss', 'Office/boss/payer', 'create', 'create'])
    const sub = graph.nodes.find(({ lineage }) => lineage.by === 'Office/boss/payer')?.id
    const boss = graph.nodes.find(({ lineage }) => lineage.by === 'Office/boss')?.id
    expect(graph.links).toMatchObject([{ from: boss, to: sub }])
    expect(graph.ancestors(out.id)).toContain(boss)
    expect((await runtime.graph(out.id)).nodes.map(({ id }) => id).toSorted()).toEqual(
      graph.nodes.map(({ id }) => id).toSorted(),
    )
    expect((await runtime.graph('all')).nodes).toHaveLength(5)
  })

  test('a bundle of the session has the sub-agent and its prompt, verifies, and comes back whole', async () => {
    const out = await make()
    const store = await runtime.store
    for (const content of [
      { runs: ['r'] },
      { sessions: [out.id] },
      { sessions: [out.id], with: 'alone' } as const,
    ]) {
      const text = await textOf(writeBundle(store, content))
      expect(await verifyBundle(text)).toMatchObject({ ok: true })
      const bundle = await readBundle(text)
      expect(bundle.sessions.map(session => session.text)).toContain('paid')
      expect(bundle.sessions.filter(session => session.id.startsWith('prompt-'))).toHaveLength(2)
      const other = await openStore('memory:')
      await importBundle(bundle, other)
      const again = await dossierOf(other, out.id)
      expect(again.spending.total.totalTokens).toBe(10_022)
      expect(again.approvals).toHaveLength(1)
    }
  })

  test('a trajectory has the sub-agent’s', async () => {
    const out = await make()
    const store = await runtime.store
    const result = out.chunks.find(chunk => chunk.kind === 'tool-result')
    const sub = await store.sessions.get(result?.sessions?.[0]?.session as string)
    const trajectory = toATIF(out, { sessions: id => (id === sub.id ? sub : undefined) })
    expect(trajectory.subagent_trajectories).toMatchObject([
      { trajectory_id: sub.id, agent: { name: 'Office/boss/payer' } },
    ])
    const [observed] = trajectory.steps.flatMap(step => step.observation?.results ?? [])
    expect(observed?.subagent_trajectory_ref).toMatchObject([{ trajectory_id: sub.id }])
    expect(trajectory.final_metrics.total_prompt_tokens).toBe(18)
  })
})

test('a bundle without a session that a tool result names does not verify', async () => {
  const out = await inOne()
  const store = await runtime.store
  const result = out.chunks.find(chunk => chunk.kind === 'tool-result')
  const sub = result?.sessions?.[0]?.session as string
  const text = await textOf(writeBundle(store, { sessions: [out.id] }))
  const kept = withoutSession(text, sub)
  const verified = await verifyBundle(kept)
  expect(verified.ok).toBe(false)
  expect(verified.problem?.reason).toContain(sub)
})

test('a resumed run keeps the times at which things happened', async () => {
  vi.useFakeTimers({ toFake: ['Date'], now: 1_000_000 })
  let turn = 0
  const out = await parked(() => vi.setSystemTime(1_000_000 + ++turn * 1_000))
  const sub = await runtime.sessions.get(
    out.chunks.find(chunk => chunk.kind === 'tool-result')?.sessions?.[0]?.session as string,
  )
  expect([...sub.chunks].map(({ kind, at }) => [kind, at - 1_000_000])).toEqual([
    ['user', 0],
    ['assistant', 0],
    ['approval', 0],
    ['approval', 1000],
    ['tool-result', 2000],
    ['assistant', 2000],
  ])
  expect([...out.chunks].map(({ kind, at }) => [kind, at - 1_000_000])).toEqual([
    ['user', 0],
    ['assistant', 0],
    ['tool-result', 2000],
    ['assistant', 2000],
    ['effect', 2000],
  ])
})

test('what a workflow adds itself has the time of the run it was first made in', async () => {
  vi.useFakeTimers({ toFake: ['Date'], now: 5_000 })
  let fails = true
  class Talk extends Workflow {
    one = new Agent('One.', { name: 'one', model: scripted(['first']) })
    async forward(session: Session) {
      const out = await this.one(session.user('Go on.'))
      const again = out.fork('next').user('And then?')
      if (fails) throw new Error('down')
      return again
    }
  }
  const talk = new Talk()
  await expect(runtime.run(talk, Session.fromUserMessage('Hi'), { id: 't' })).rejects.toThrow('down')
  vi.setSystemTime(9_000)
  fails = false
  const out = await runtime.resume('t', talk)
  expect([...out.chunks].map(({ at }) => at)).toEqual([5_000, 5_000, 5_000, 5_000])
})

test('effects and memory of a tool’s own code stand before its result, also when the result is on record', async () => {
  let fails = true
  const book = tool({
    name: 'book',
    description: '',
    input: { type: 'object' },
    run: async () => effect('reserve', { seat: 1 }, () => 'seat 1'),
  })
  const agent = new Agent('Book.', {
    name: 'booker',
    tools: [book],
    model: scripted((_, n) => {
      if (n === 0) return { toolCalls: [{ name: 'book' }] }
      if (fails) throw new Error('down')
      return 'booked'
    }),
    retry: { attempts: 1 },
  })
  await expect(runtime.run(agent, Session.fromUserMessage('Book.'), { id: 'b' })).rejects.toThrow('down')
  fails = false
  const out = await runtime.resume('b', agent)
  expect([...out.chunks].map(chunk => chunk.kind)).toEqual([
    'user',
    'assistant',
    'effect',
    'tool-result',
    'assistant',
  ])
  const { callId } = out.chunks.find(chunk => chunk.kind === 'tool-result') ?? {}
  expect(out.chunks.find(chunk => chunk.kind === 'effect')).toMatchObject({ name: 'reserve', callId })
})

test('a file that a sub-agent wrote is one change, and all of the sub-agent’s session is on its line', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'inside-'))
  const kept = createRuntime({ store: 'memory:', workspaces: join(folder, 'kept') })
  const clerk = new Agent('You write.', {
    name: 'clerk',
    model: scripted([
      { toolCalls: [{ name: 'write_workspace_file', args: { path: 'receipt.txt', content: 'paid' } }] },
      'written',
    ]),
  })
  const boss = new Agent('You decide.', {
    name: 'boss',
    builtins: false,
    tools: [clerk.asTool({ name: 'ask_clerk', description: 'Writes.' })],
    model: scripted([{ toolCalls: [{ name: 'ask_clerk', args: { request: 'Write it.' } }] }, 'done']),
  })
  try {
    const input = Session.fromUserMessage('Write a receipt.').to('local', join(folder, 'project'))
    await kept.run(boss, input, { id: 'f' })
    const { files, patch, steps, branches } = await dossierOf(await kept.store, 'f')
    const written = steps.find(({ kind, by }) => kind === 'tool-result' && by?.endsWith('clerk'))
    expect(files).toMatchObject([
      { path: 'receipt.txt', changes: [{ step: written?.n, change: 'added' }], agents: [written?.by] },
    ])
    expect(patch.files.map(({ path, step }) => [path, step])).toEqual([['receipt.txt', written?.n]])
    expect(branches.map(({ name, steps: count }) => [name, count])).toEqual([
      ['trunk', 5],
      ['clerk', 5],
    ])
  } finally {
    await kept.close()
    rmSync(folder, { recursive: true })
  }
})

test('what was spent inside an effect that a run borrows is in its report too', async () => {
  const usage = { inputTokens: 900, outputTokens: 100, cost: 0.25 }
  class Ask extends Workflow {
    expert = new Agent('Answer.', { name: 'expert', model: scripted(() => ({ text: 'Yes.', usage })) })
    async forward(session: Session, context: ForwardContext) {
      await context.effect('ask', {}, async () => (await this.expert(Session.fromUserMessage('Is it?'))).text)
      return session
    }
  }
  const first = await runtime.run(new Ask(), Session.fromUserMessage('Ask.'), { id: 'one' })
  const second = await runtime.run(new Ask(), Session.fromUserMessage('Ask.'), { id: 'two', reuse: 'one' })
  expect([first.usage, second.usage]).toMatchObject([{ totalTokens: 1000 }, { totalTokens: 1000 }])
  expect((await runtime.report('one')).paid).toMatchObject({ tokens: 1000, cost: 0.25 })
  expect(await runtime.report('two')).toMatchObject({
    paid: { tokens: 0 },
    reused: { calls: 1, tokens: 1000, cost: 0.25 },
  })
  const { spending } = await dossierOf(await runtime.store, 'two')
  expect(spending).toMatchObject({ total: { totalTokens: 1000 } })
  expect(spending.unkept).toBeUndefined()
})

test('the graph of all sessions has those of a resumed run once, however many runs came after it', async () => {
  let fails = true
  const agent = new Agent('Answer.', {
    model: scripted(() => (fails ? { error: { status: 401 } } : 'Hello.')),
  })
  await expect(runtime.run(agent, Session.fromUserMessage('Hi'), { id: 'f' })).rejects.toThrow('401')
  fails = false
  await runtime.resume('f', agent)
  const { nodes } = await runtime.graph('all')
  const { runs } = await runtime.store
  await Promise.all(Array.from({ length: 1000 }, (_, i) => runs.create({ id: `later-${i}` })))
  expect((await runtime.graph('all')).nodes).toEqual(nodes)
})

test('a failure that a resume got past is in the dossier', async () => {
  let fails = true
  const agent = new Agent('Answer.', {
    name: 'a',
    model: scripted(() => (fails ? { error: { status: 401 } } : 'Hello.')),
  })
  const input = Session.fromUserMessage('Hi')
  await expect(runtime.run(agent, input, { id: 'f' })).rejects.toMatchObject({ code: 'model-unauthorized' })
  fails = false
  await runtime.resume('f', agent)
  const dossier = await dossierOf(await runtime.store, 'f')
  expect(dossier.failures).toMatchObject([
    { what: 'model', error: 'model-unauthorized', resumed: true, by: 'a' },
  ])
  expect(dossierMarkdown(dossier)).toContain('before a resume: `model-unauthorized`')
  expect(dossierHtml(dossier)).toContain('before a resume')
})

/** The bundle as somebody writes it who takes a session out and recomputes every digest. */
function withoutSession(text: string, id: string): string {
  const records = text
    .trimEnd()
    .split('\n')
    .map(line => JSON.parse(line))
  const first = records.findIndex(record => record.type === 'session' && record.id === id)
  const last = records.findIndex(record => record.type === 'end' && record.session === id)
  records.splice(first, last - first + 1)
  const { digest: _, ...close } = records.pop()
  const lines = records.map(bundleLine).join('')
  const heads = close.heads.filter(({ session }: { session: string }) => session !== id)
  const sha256 = createHash('sha256').update(lines).digest('hex')
  return lines + bundleLine(seal({ ...close, heads, lines: records.length, sha256 }))
}
