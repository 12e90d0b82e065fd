import { RathError } from '../base/errors.ts'
import type { Json, JsonObject } from '../base/json.ts'
import type { JournalEntry } from '../store/spec.ts'
import { askedIn } from './entry.ts'
import { nameOf, type RunRecord } from './record.ts'

/** An effect that may have happened and has no outcome: only a person can find out. */
export interface Unfinished {
  /** A tool call's id, or the effect's key. */
  readonly id: string
  readonly key: string
  readonly kind: string
  readonly by: string
  readonly request: Json
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

export function describeUnfinished(entry: JournalEntry): Unfinished {
  const { request, by, id } = askedIn(entry)
  return { id: id ?? entry.key, key: entry.key, kind: entry.kind, by, request }
}

export function needsReview(run: string, entries: readonly JournalEntry[]): RathError {
  const calls = entries.map(describeUnfinished)
  const told = calls.map(({ id, kind, request }) => `${nameIn(request) ?? kind} (${id})`).join(', ')
  return new RathError(
    'needs-review',
    `Run ${run} was cut off while this was under way, and nobody knows whether it happened: ${told}. Find out, say so with runtime.review, then resume.`,
    { data: { run, calls: calls as unknown as JsonObject[] } },
  )
}

function nameIn(request: Json): string | undefined {
  const { tool } = (request ?? {}) as { tool?: unknown }
  return typeof tool === 'string' ? tool : undefined
}
