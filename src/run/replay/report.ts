import type { JournalEntry, RunStatus, Store } from '../../store/spec.ts'
import { askedIn, outcomeIn, spentIn } from '../entry.ts'
import { loadRecord } from './record.ts'

/** What a run did, and what of it came from another run. */
export interface RunReport {
  readonly run: string
  readonly status: RunStatus
  /** The run that outcomes were borrowed from. */
  readonly reuse?: string
  readonly paid: Spent
  readonly reused: Spent
  /** The same for each kind of effect: `model`, `tool`, … */
  readonly kinds: Readonly<Record<string, { readonly paid: Spent; readonly reused: Spent }>>
}

/** Effects, the tokens of answers among them, and how long they took together, in milliseconds. */
export interface Spent {
  readonly calls: number
  readonly tokens: number
  /** US dollars, where a price is known. */
  readonly cost?: number
  readonly ms: number
}

const nothing: Spent = Object.freeze({ calls: 0, tokens: 0, ms: 0 })

export async function reportRun(run: string, store: Store): Promise<RunReport> {
  const { status, data } = await store.runs.get(run)
  const record = await loadRecord(run, store)
  const kinds: Record<string, { paid: Spent; reused: Spent }> = {}
  let paid = nothing
  let reused = nothing
  for (const entry of record.effects()) {
    const spent = spentOn(entry)
    const isReused = askedIn(entry).reused !== undefined
    const kind = kinds[entry.kind] ?? { paid: nothing, reused: nothing }
    kinds[entry.kind] = isReused
      ? { ...kind, reused: sum(kind.reused, spent) }
      : { ...kind, paid: sum(kind.paid, spent) }
    if (isReused) reused = sum(reused, spent)
    else paid = sum(paid, spent)
  }
  const { reuse } = data
  return { run, status, ...(typeof reuse === 'string' && { reuse }), paid, reused, kinds }
}

function spentOn(entry: JournalEntry): Spent {
  const { totalTokens = 0, cost } = spentIn(entry) ?? {}
  return { calls: 1, tokens: totalTokens, ...(cost !== undefined && { cost }), ms: outcomeIn(entry)?.ms ?? 0 }
}

function sum(a: Spent, b: Spent): Spent {
  const cost = a.cost === undefined && b.cost === undefined ? {} : { cost: (a.cost ?? 0) + (b.cost ?? 0) }
  return { calls: a.calls + b.calls, tokens: a.tokens + b.tokens, ...cost, ms: a.ms + b.ms }
}
