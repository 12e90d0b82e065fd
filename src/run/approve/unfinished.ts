import { RathError } from '../../base/errors.ts'
import type { Json, JsonObject } from '../../base/json.ts'
import type { JournalEntry } from '../../store/spec.ts'
import { toolIn } from '../claims.ts'
import type { Doubt } from '../door.ts'
import { type AskedRecord, askedIn, insideOf, outcomeIn } from '../entry.ts'
import { nameOf, type RunRecord } from '../record.ts'

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
    for (const { key, request } of record.effects())
      if (!key.includes('+')) this.#count(request as unknown as AskedRecord)
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
    { data: { run, calls: open as unknown as JsonObject[] } },
  )
}
