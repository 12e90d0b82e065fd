import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { Session } from '../../src/session/session.ts'
import type { NewEntry } from '../../src/store/spec.ts'
import { Golden } from './journal/golden.ts'
import { fresh } from './journal/make.ts'

/** A run as version 1 of the journal kept it: the entries, and the sessions that went in and came out. */
const kept = JSON.parse(readFileSync(join(import.meta.dirname, '../fixtures/run-v1.json'), 'utf8'))

it('a run that was recorded by the first version of the journal replays', async () => {
  const { runtime, store } = await fresh()
  const input = await store.sessions.put(Session.fromJSONL(kept.input))
  const output = await store.sessions.put(Session.fromJSONL(kept.output))
  await store.runs.create({ id: 'golden', input: input.id, data: kept.data })
  const log = await store.runs.claim('golden', 'test', 60_000)
  for (const { outcome, ...entry } of kept.entries as (NewEntry & { outcome?: never })[]) {
    const { key, occurrence } = entry
    await log.append([{ kind: 'intend', entry }])
    if (outcome !== undefined) await log.append([{ kind: 'conclude', key, occurrence, outcome }])
  }
  await log.append([{ kind: 'update', change: { status: kept.status, output: output.id, release: true } }])
  const report = await runtime.replay('golden', new Golden())
  expect(report.divergence?.message).toBeUndefined()
  expect(report).toMatchObject({ ok: true, state: output.state })
  expect(kept.data.format).toBe(1)
})
