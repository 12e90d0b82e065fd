import { RathError, show } from '../../base/errors.ts'
import { asJson, type Json, type JsonObject, toJson } from '../../base/json.ts'
import type { JournalEntry, RunRow, Store } from '../../store/spec.ts'
import { outcomeOf } from '../../tool/outcome.ts'
import type { Doubt } from '../effect.ts'
import { type AskedRecord, askedIn, insideOf, outcomeIn } from '../entry.ts'
import { Journal } from '../journal.ts'
import { loadRecord, nameOf, type RunRecord, toolIn } from '../replay/record.ts'

/** What a person found out about an effect that a run stopped for. One of `happened` and `same` is given. */
export interface Reviewed {
  /** It happened: `result` is its outcome. It did not: a resumed run does it. */
  readonly happened?: boolean
  /** What it gave back; null by default. */
  readonly result?: Json
  /** Of an effect that is not on record: the id of the recorded outcome that it is. It is used, and nothing is done. */
  readonly same?: string
  readonly by?: string
  readonly reason?: string
}

/** What a person has to find out before a run can go on; nothing unless it stopped for that. */
export async function openReviews(run: string, store: Store): Promise<Unfinished[]> {
  const row = await store.runs.get(run)
  if (row.status !== 'needs-review') return []
  return (await openIn(row, store)).map(({ told }) => told)
}

interface Open {
  readonly told: Unfinished
  /** It was cut off. */
  readonly entry?: JournalEntry
  /** It is not on record. */
  readonly doubt?: KeptDoubt
  readonly reviews: Reviews
}

async function openIn({ id, data }: RunRow, store: Store): Promise<Open[]> {
  const record = await loadRecord(id, store)
  const doubts = doubtsIn(data)
  const reviews = new Reviews(record, doubts)
  return [
    ...unfinishedIn(record, listIn(data, 'again')).map(entry => ({
      told: reviews.cutOff(entry),
      entry,
      reviews,
    })),
    ...doubts.map(doubt => ({ told: reviews.notOnRecord(doubt), doubt, reviews })),
  ]
}

/** Settles an effect that may have happened. `id` is what `unfinished` calls it; a call's id or an entry's key do where only one has it. */
export async function reviewEffect(
  run: string,
  id: string,
  found: Reviewed,
  { store, lease }: { store: Store; lease: number },
): Promise<void> {
  const { happened, result = null, same, by, reason } = found ?? {}
  if (
    (happened === undefined) === (same === undefined) ||
    (same === undefined && typeof happened !== 'boolean')
  ) {
    throw new RathError(
      'invalid-argument',
      `A review says { happened: true, result }, { happened: false } or { same: ID }, not ${show(found)}.`,
    )
  }
  const journal = await Journal.claim(run, store, lease)
  try {
    const row = await store.runs.get(run)
    const open = await openIn(row, store)
    const { entry, doubt, told, reviews } = pick(open, id, run)
    const who = { ...(by !== undefined && { by }), ...(reason !== undefined && { reason }), at: Date.now() }
    const { kind } = told
    const given = () =>
      toJson(kind === 'tool' ? { outcome: outcomeOf(result, told.id), durationMs: 0 } : result, 'result')
    let { data } = row
    if (doubt) {
      const { key, occurrence, asked } = doubt
      const rest = doubtsIn(data).filter(other => nameOf(other) !== nameOf(doubt))
      data = { ...data, doubts: asJson(rest) }
      const recorded = same === undefined ? undefined : pickRecorded(same, doubt, reviews)
      if (recorded || happened) {
        const request = asJson({ ...asked, ...(recorded && { instead: nameOf(recorded) }) })
        const outcome = (recorded?.outcome ?? { value: given() }) as JsonObject
        journal.note({ key, occurrence, kind, request })
        journal.conclude({ key, occurrence }, { ...outcome, reviewed: who })
      } else data = { ...data, allowed: [...listIn(data, 'allowed'), nameOf(doubt)] }
    } else if (entry && same === undefined) {
      if (happened) journal.conclude(entry, { value: given(), reviewed: who })
      else data = { ...data, again: [...listIn(data, 'again'), nameOf(entry)] }
    } else {
      throw new RathError(
        'invalid-argument',
        `${told.id} of run ${run} was cut off, so that no outcome of it is on record; say whether it happened: { happened: true, result } or { happened: false }.`,
      )
    }
    journal.update({ data, status: open.length > 1 ? 'needs-review' : 'running' })
  } finally {
    await journal.release()
  }
}

function doubtsIn(data: JsonObject): KeptDoubt[] {
  return listIn(data, 'doubts') as unknown as KeptDoubt[]
}

/** A list that the row of a run keeps. */
function listIn(data: JsonObject, name: string): readonly Json[] {
  const list = data[name]
  return Array.isArray(list) ? list : []
}

function pick(open: readonly Open[], id: string, run: string): Open {
  const called = ({ told }: Open) => [told.id, insideOf(told), `${told.id.split('@')[0]}@${insideOf(told)}`]
  const exact = open.filter(one => called(one).includes(id))
  const named =
    exact.length > 0 ? exact : open.filter(({ told }) => told.key === id || told.id.split('@')[0] === id)
  if (named.length === 1) return named[0] as Open
  const known = open.map(({ told }) => told.id).join(', ') || 'none'
  throw new RathError(
    'invalid-argument',
    named.length === 0
      ? `Nothing of run ${run} that is called ${show(id)} waits for a review; there are: ${known}.`
      : `Several effects of run ${run} are called ${show(id)}; name one of: ${known}.`,
  )
}

function pickRecorded(id: string, { unclaimed }: KeptDoubt, reviews: Reviews): JournalEntry {
  const entries = reviews.entriesOf(unclaimed)
  const found = entries.filter(entry => [reviews.idOf(entry), insideOf(entry), entry.key].includes(id))
  if (found.length === 1) return found[0] as JournalEntry
  throw new RathError(
    'invalid-argument',
    `No outcome that may be it is called ${show(id)}; there are: ${entries.map(entry => reviews.idOf(entry)).join(', ')}.`,
  )
}

/** An external effect that a run cannot decide about by itself: only a person can find out. */
export interface Unfinished {
  /** A tool call's id, with the entry's name behind it where another call has the same; the entry's name of any other effect. */
  readonly id: string
  readonly key: string
  readonly occurrence: number
  readonly kind: string
  readonly by: string
  readonly request: Json
  /**
   * `cut-off`: it was under way when its process ended, and may have happened. `not-on-record`: a resumed run is about to do it, while outcomes
   * of the same tool and agent are on record that nothing has asked for again; it may be one of them.
   */
  readonly why: 'cut-off' | 'not-on-record'
  /** Those outcomes. */
  readonly recorded?: readonly RecordedOutcome[]
}

export interface RecordedOutcome {
  readonly id: string
  readonly request: Json
  readonly outcome: Json
  /** When it was recorded, in milliseconds since the epoch. */
  readonly at?: number
}

/** A doubt as the row of a run keeps it. */
export interface KeptDoubt {
  readonly key: string
  readonly occurrence: number
  readonly kind: string
  readonly asked: AskedRecord
  /** Names of entries. */
  readonly unclaimed: readonly string[]
}

export function keptDoubt({ unclaimed, ...doubt }: Doubt): KeptDoubt {
  return { ...doubt, unclaimed: unclaimed.map(nameOf) }
}

/** Entries that a person has to look at, in order; `again` names those that were looked at and did not happen. */
export function unfinishedIn(record: RunRecord, again: readonly unknown[] = []): JournalEntry[] {
  return record
    .effects()
    .filter(
      entry =>
        entry.outcome === undefined &&
        entry.kind !== 'approval' &&
        askedIn(entry).rule === 'external' &&
        !again.includes(nameOf(entry)),
    )
}

/** How people see what a run stopped for. */
export class Reviews {
  readonly #record: RunRecord
  /** How many effects have this id. */
  readonly #ids = new Map<string, number>()

  constructor(record: RunRecord, doubts: readonly KeptDoubt[] = []) {
    this.#record = record
    for (const entry of record.effects()) if (!entry.key.includes('+')) this.#count(askedIn(entry))
    for (const { asked } of doubts) this.#count(asked)
  }

  cutOff(entry: JournalEntry): Unfinished {
    const { key, occurrence, kind } = entry
    const { request, by } = askedIn(entry)
    return { id: this.idOf(entry), key, occurrence, kind, by, request, why: 'cut-off' }
  }

  notOnRecord({ key, occurrence, kind, asked, unclaimed }: KeptDoubt): Unfinished {
    const { request, by } = asked
    const recorded = this.entriesOf(unclaimed).map((entry): RecordedOutcome => {
      const outcome = outcomeIn(entry)?.value as Json
      const { concludedAt: at } = entry
      return {
        id: this.idOf(entry),
        request: askedIn(entry).request,
        outcome: entry.kind === 'tool' ? ((outcome as { outcome?: Json }).outcome ?? outcome) : outcome,
        ...(at !== undefined && { at }),
      }
    })
    const id = this.#id(asked.id, { key, occurrence })
    return { id, key, occurrence, kind, by, request, why: 'not-on-record', recorded }
  }

  idOf(entry: JournalEntry): string {
    return this.#id(askedIn(entry).id, entry)
  }

  entriesOf(names: readonly string[]): JournalEntry[] {
    return this.#record.effects().filter(entry => names.includes(nameOf(entry)))
  }

  #id(id: string | undefined, entry: { readonly key: string; readonly occurrence: number }): string {
    if (id === undefined) return insideOf(entry)
    return this.#ids.get(id) === 1 ? id : `${id}@${insideOf(entry)}`
  }

  #count({ id }: AskedRecord): void {
    if (id !== undefined) this.#ids.set(id, (this.#ids.get(id) ?? 0) + 1)
  }
}

/** What an error of a run that needs a review asks a person to find out. */
export function unfinishedOf({ data: { calls } }: RathError): readonly Unfinished[] {
  return Array.isArray(calls) ? (calls as unknown as Unfinished[]) : []
}

export function needsReview(run: string, open: readonly Unfinished[]): RathError {
  const told = ({ id, kind, request }: Unfinished) => `${toolIn(request) ?? kind} (${id})`
  const list = (why: Unfinished['why']) => open.filter(one => one.why === why).map(told)
  const cutOff = list('cut-off')
  const doubted = list('not-on-record')
  const parts = [
    cutOff.length > 0 &&
      `it was cut off while this was under way, and nobody knows whether it happened: ${cutOff.join(', ')}`,
    doubted.length > 0 &&
      `it is about to do what is not on record, while its record has outcomes of the same tool that nothing has asked for again: ${doubted.join(', ')}`,
  ]
  return new RathError(
    'needs-review',
    `Run ${run} needs a review: ${parts.filter(Boolean).join('; ')}. Find out, say so with runtime.review, then resume.`,
    { data: { run, calls: asJson(open) } },
  )
}
