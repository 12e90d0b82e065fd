import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { Session } from '../../src/session/session.ts'
import type { NewEntry, Store } from '../../src/store/spec.ts'
import { Golden } from './journal/golden.ts'
import { type kept as keptRuns, keptWorkflow } from './journal/kept.ts'
import { fresh } from './journal/make.ts'

interface Kept {
  readonly status: 'done' | 'failed'
  readonly data: { readonly format: number }
  readonly input: string | readonly string[]
  readonly output: string | readonly string[]
  readonly entries: readonly (NewEntry & { outcome?: never })[]
}

const fixture = (name: string) =>
  JSON.parse(readFileSync(join(import.meta.dirname, `../fixtures/${name}`), 'utf8'))

/** Puts a run into a store as the first version of the journal kept it: the entries, and the sessions that went in and came out. */
async function keep(id: string, kept: Kept, store: Store): Promise<Session> {
  const read = (text: Kept['input']) =>
    store.sessions.put(Session.fromJSONL(typeof text === 'string' ? text : `${text.join('\n')}\n`))
  const input = await read(kept.input)
  const output = await read(kept.output)
  await store.runs.create({ id, input: input.id, data: kept.data })
  const log = await store.runs.claim(id, 'test', 60_000)
  for (const { outcome, ...entry } of kept.entries) {
    const { key, occurrence } = entry
    await log.append([{ kind: 'intend', entry }])
    if (outcome !== undefined) await log.append([{ kind: 'conclude', key, occurrence, outcome }])
  }
  await log.append([{ kind: 'update', change: { status: kept.status, output: output.id, release: true } }])
  return output
}

it('a run that was recorded by the first version of the journal replays', async () => {
  const { runtime, store } = await fresh()
  const kept: Kept = fixture('run-v1.json')
  const output = await keep('golden', kept, store)
  const report = await runtime.replay('golden', new Golden())
  expect(report.divergence?.message).toBeUndefined()
  expect(report).toMatchObject({ ok: true, state: output.state })
  expect(kept.data.format).toBe(1)
})

const runs: Record<(typeof keptRuns)[number], Kept> = fixture('runs-v1.json')

for (const name of ['samples', 'files', 'approval'] as const) {
  it(`so does one with ${name}`, async () => {
    const { runtime, store } = await fresh()
    const output = await keep(name, runs[name], store)
    const report = await runtime.replay(name, keptWorkflow(name, false))
    expect(report.divergence?.message).toBeUndefined()
    expect(report).toMatchObject({ ok: true, state: output.state, unasked: [] })
    expect(runs[name].data.format).toBe(1)
  })
}

it('one that failed is resumed by the rule it was begun with: nobody is charged again', async () => {
  const { runtime, store } = await fresh()
  await keep('payments', runs.payments, store)
  const charged: string[] = []
  const workflow = () => keptWorkflow('payments', false, who => charged.push(who))
  const out = await runtime.resume('payments', workflow())
  expect([out.text, charged]).toEqual(['All charged.', []])
  expect((await store.runs.get('payments')).data.format).toBe(1)
  expect(await runtime.replay('payments', workflow())).toMatchObject({ ok: true, state: out.state })
})

it('its outcomes can be borrowed, as far as neither files nor forks without a label are part of it', async () => {
  const { runtime, store } = await fresh()
  await keep('golden', fixture('run-v1.json'), store)
  const session = await store.sessions.get((await store.runs.get('golden')).input as string)
  const again = runtime.run(new Golden(), session, { reuse: 'golden' })
  await again
  expect((await runtime.report(again.runId)).kinds).toMatchObject({ model: { paid: { calls: 0 } } })
})
