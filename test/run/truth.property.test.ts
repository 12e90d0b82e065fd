import { mkdtempSync, readFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { afterAll, expect, it } from 'vitest'
import { importBundle } from '../../src/evidence/bundle/import.ts'
import { readBundle } from '../../src/evidence/bundle/read.ts'
import { writeBundle } from '../../src/evidence/bundle/write.ts'
import { dossierOf } from '../../src/evidence/dossier/dossier-of.ts'
import type { MemoryLike } from '../../src/run/memory/memories.ts'
import { createRuntime, type Runtime } from '../../src/run/runtime.ts'
import { removeFolder } from '../../src/sandbox/host/remove-folder.ts'
import type { GraphNode } from '../../src/session/graph.ts'
import { Session } from '../../src/session/session.ts'
import { openStore } from '../../src/store/open.ts'
import { torture } from '../support/torture.ts'
import type { Driven, Weather } from './truth/drive.ts'
import { driveHere } from './truth/in-process.ts'
import { driveProcesses } from './truth/in-processes.ts'
import { type Expected, expectedOf, failableIn, type Plan, plans, tokensIn } from './truth/plan.ts'
import { build } from './truth/program.ts'

const folder = mkdtempSync(join(tmpdir(), 'openrath-truth-'))
// Branches of a process that was killed have folders that an ordinary user has to open first.
afterAll(() => removeFolder(folder))

const programs = torture({ short: 60, full: 2000 })

const weather: fc.Arbitrary<Weather> = fc.record({
  seed: fc.integer({ min: 0, max: 2 ** 30 }),
  lives: fc.array(fc.integer({ min: 1, max: 80 }), { maxLength: 3 }),
  failing: fc.uniqueArray(fc.integer({ min: 1, max: 12 }), { maxLength: 2 }),
})

const weatherFor = (plan: Plan, sky: Weather): Weather => ({
  ...sky,
  failing: sky.failing.filter(step => failableIn(plan).includes(step)),
})

it('dossier, report, usage, bundle and graph agree with what the models and tools of any program counted', async () => {
  let number = 0
  const seen = { cuts: 0, approvals: 0, mails: 0 }
  await fc.assert(
    fc.asyncProperty(plans({ withFiles: false }), weather, async (plan, sky) => {
      await using store = await openStore('memory:')
      const memory = { backend: 'local', path: join(folder, `memory-${number++}`) }
      const driven = await driveHere(plan, weatherFor(plan, sky), store, memory)
      const expected = expectedOf(plan)
      seen.cuts += driven.cuts
      seen.approvals += expected.approvals
      seen.mails += expected.mailed.length
      expectDoneOnce(driven, expected)
      await using runtime = createRuntime({ store, workspaces: false })
      await expectOneTruth(driven, expected, runtime)
      await expectReplay(driven, plan, runtime, memory)
      await expectReuse(driven, plan, runtime, memory)
    }),
    { numRuns: programs },
  )
  console.log(`${programs} programs: ${JSON.stringify(seen)}`)
  for (const count of Object.values(seen)) expect(count).toBeGreaterThan(programs / 50)
})

it('the same holds for programs that work on files, in processes that are killed', async () => {
  let number = 0
  let cuts = 0
  await fc.assert(
    fc.asyncProperty(plans({ withFiles: true }), weather, async (plan, sky) => {
      const place = join(folder, `place-${number++}`)
      const open = () => openStore(`sqlite:${join(place, 'rath.db')}`, { secrets: {} })
      const driven = await driveProcesses(plan, weatherFor(plan, sky), place, open)
      cuts += driven.cuts
      const expected = expectedOf(plan)
      expectDoneOnce(driven, expected)
      for (const step of expected.written)
        expect(readFileSync(join(place, 'project', `${step}.txt`), 'utf8')).toBe(`by ${step}\n`)
      await using store = await open()
      await using runtime = createRuntime({ store, workspaces: join(place, 'workspaces') })
      await expectOneTruth(driven, expected, runtime)
      await expectReplay(driven, plan, runtime, { backend: 'local', path: join(place, 'memory') })
    }),
    { numRuns: programs / 20, endOnFailure: true },
  )
  console.log(`${programs / 20} programs with files, killed ${cuts} times`)
})

async function expectReplay({ run }: Driven, plan: Plan, runtime: Runtime, memory: MemoryLike) {
  const calm = { count: () => expect.unreachable(), delay: () => 0, fails: () => false, memory }
  const replayed = await runtime.replay(run, build(plan, calm))
  expect(replayed.divergence?.message).toBeUndefined()
  expect(replayed).toMatchObject({ ok: true, state: (await outOf(run, runtime)).state })
}

/** A run that borrows has the same answers on its record, and says of each token whether it was paid or borrowed. */
async function expectReuse({ run }: Driven, plan: Plan, runtime: Runtime, memory: MemoryLike) {
  const calm = { count: () => {}, delay: () => 0, fails: () => false, memory }
  const id = `${run}-again`
  const approve = () => ({ verdict: 'approved', by: 'ann' }) as const
  const input = Session.fromUserMessage('Begin.')
  const { usage } = await runtime.run(build(plan, calm), input, { id, reuse: run, approve })
  const { paid, reused } = await runtime.report(id)
  expect(paid.tokens + reused.tokens, 'tokens of a run that borrows').toBe(usage.totalTokens)
  const { spending } = await dossierOf(await runtime.store, id)
  expect(spending.total.totalTokens, 'its dossier').toBe(usage.totalTokens)
}

const outOf = async (run: string, runtime: Runtime) =>
  runtime.sessions.get((await runtime.runs.get(run)).output as string)

const sorted = (lines: readonly string[]) => lines.toSorted()

/** External effects happened once each; a model may have been asked again only for an answer that was lost with its process, or
 * cancelled because another branch failed. */
function expectDoneOnce({ ledger, cuts }: Driven, { answers, paid, mailed }: Expected): void {
  const external = [...paid.map(step => `pay ${step}`), ...mailed.map(step => `mail ${step}`)]
  expect(sorted(ledger.filter(line => /^(pay|mail) /.test(line)))).toEqual(sorted(external))
  const given = sorted(ledger.filter(line => line.startsWith('answer')))
  const needed = sorted(answers.map(step => `answer ${step}`))
  const failed = ledger.some(line => line.startsWith('fail'))
  if (cuts === 0 && !failed) expect(given).toEqual(needed)
  else for (const line of needed) expect(count(given, line)).toBeGreaterThanOrEqual(count(needed, line))
}

const count = (lines: readonly string[], line: string) => lines.filter(one => one === line).length

async function expectOneTruth({ run, ledger }: Driven, expected: Expected, runtime: Runtime): Promise<void> {
  const tokens = tokensIn(expected.answers)
  const store = await runtime.store
  const out = await outOf(run, runtime)
  const failures = ledger.filter(line => line.startsWith('fail')).length
  const report = await runtime.report(run)
  expect(report.paid.tokens, 'tokens of the report').toBe(tokens)
  // A failure that was cut off before it was written down is not on record.
  const asked = report.kinds.model?.paid.calls ?? 0
  expect(asked, 'model calls of the report').toBeGreaterThanOrEqual(expected.answers.length)
  expect(asked, 'model calls of the report').toBeLessThanOrEqual(expected.answers.length + failures)
  expect(report.kinds.tool?.paid.calls ?? 0, 'tool calls of the report').toBe(expected.tools)
  expect(out.usage.totalTokens, 'usage of the session').toBe(tokens)
  expect(out.verify()).toMatchObject({ ok: true })

  const dossier = await dossierOf(store, run)
  expect(dossier.spending.total.totalTokens, 'tokens of the dossier').toBe(tokens)
  expect(dossier.steps.filter(step => step.kind === 'assistant').length, 'answers of the dossier').toBe(
    expected.answers.length,
  )
  const called = dossier.tools.reduce((sum, { calls }) => sum + calls, 0)
  expect(called, 'tool calls of the dossier').toBe(expected.tools)
  expect(dossier.approvals.map(({ verdict }) => verdict)).toEqual(Array(expected.approvals).fill('approved'))
  for (const { askedAt, decidedAt } of dossier.approvals)
    expect(decidedAt).toBeGreaterThanOrEqual(askedAt as number)

  const bundle = await readBundle(writeBundle(store, { runs: [run] }))
  expect(bundle.verification).toMatchObject({ ok: true })
  await using elsewhere = await openStore('memory:')
  await importBundle(bundle, elsewhere)
  const carried = await dossierOf(elsewhere, run)
  expect(carried.spending.total.totalTokens, 'tokens of the bundle').toBe(tokens)

  const graph = await runtime.graph(run)
  const ids = graph.nodes.map(({ id }) => id)
  expect(new Set(ids).size).toBe(ids.length)
  expect(sorted(dossier.sessions.map(({ id }) => id))).toEqual(sorted(ids))
  expect(sorted(carried.sessions.map(({ id }) => id))).toEqual(sorted(ids))
  expect(graph.nodes.filter(isSubAgent).length, 'sub-agents in the graph').toBe(expected.agents)
  expect(dossier.effects.map(({ name }) => name)).toEqual(expected.mailed.map(() => 'mail'))
  for (const session of bundle.sessions.filter(({ id }) => ids.includes(id))) expectTimesInOrder(session)
}

function isSubAgent({ lineage }: GraphNode): boolean {
  const { inside } = lineage.extras as { inside?: { callId?: string } }
  return inside?.callId !== undefined
}

/** Along a lane, nothing is before what it followed. */
function expectTimesInOrder(session: Session): void {
  const last = new Map<string, number>()
  for (const { branch = '', at } of session.chunks) {
    expect(at).toBeGreaterThanOrEqual(last.get(branch) ?? 0)
    last.set(branch, at)
  }
}
