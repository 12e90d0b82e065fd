import { RathError, show } from '../base/errors.ts'
import { type Json, toJson } from '../base/json.ts'
import type { JournalEntry, Store } from '../store/spec.ts'
import { outcomeOf } from '../tool/outcome.ts'
import { Journal } from './journal.ts'
import { nameOf } from './record.ts'
import { loadRecord } from './resume.ts'
import { describeUnfinished, type Unfinished, unfinishedIn } from './unfinished.ts'

/** What a person found out about an effect that was cut off. */
export interface Reviewed {
  /** It happened: `result` is its outcome. It did not: a resumed run does it. */
  readonly happened: boolean
  /** What it gave back; null by default. */
  readonly result?: Json
  readonly by?: string
  readonly reason?: string
}

/** What a person has to find out before a run can go on; nothing unless it stopped for that. */
export async function openReviews(run: string, store: Store): Promise<Unfinished[]> {
  const { status, data } = await store.runs.get(run)
  if (status !== 'needs-review') return []
  const again = Array.isArray(data.again) ? data.again : []
  return unfinishedIn(await loadRecord(run, store), again).map(describeUnfinished)
}

/** Settles an effect that may have happened. `id` is a tool call's id, or the key of the entry. */
export async function reviewEffect(
  run: string,
  id: string,
  { happened, result = null, by, reason }: Reviewed,
  { store, lease }: { store: Store; lease: number },
): Promise<void> {
  const journal = await Journal.claim(run, store, lease)
  try {
    const record = await loadRecord(run, store)
    const { data } = await store.runs.get(run)
    const again = Array.isArray(data.again) ? data.again : []
    const open = unfinishedIn(record, again)
    const entry = pick(open, id, run)
    const found = { ...(by !== undefined && { by }), ...(reason !== undefined && { reason }), at: Date.now() }
    if (happened) {
      const value = entry.kind === 'tool' ? { outcome: outcomeOf(result, id), durationMs: 0 } : result
      journal.conclude(entry, { value: toJson(value, 'result'), reviewed: found } as Json)
    } else journal.update({ data: { ...data, again: [...again, nameOf(entry)] } })
    journal.update({ status: open.length > 1 ? 'needs-review' : 'running' })
  } finally {
    await journal.release()
  }
}

function pick(open: readonly JournalEntry[], id: string, run: string): JournalEntry {
  const named = open.filter(entry => describeUnfinished(entry).id === id || entry.key === id)
  if (named.length === 1) return named[0] as JournalEntry
  const known = open.map(entry => `${describeUnfinished(entry).id} (key ${entry.key})`).join(', ') || 'none'
  throw new RathError(
    'invalid-argument',
    named.length === 0
      ? `Nothing of run ${run} that is called ${show(id)} waits for a review; there are: ${known}.`
      : `Several effects of run ${run} are called ${show(id)}; name one by its key: ${known}.`,
  )
}
