import { RathError, show } from '../base/errors.ts'
import type { Operation } from './commit.ts'
import type { EntryName, EntryRow, Rows } from './driver.ts'
import type { Encoded } from './encode.ts'
import type { RunRow } from './spec.ts'

/** An operation that writes the row of a run as `decide` makes it. */
export function changing(id: string, decide: (rows: Rows) => RunRow): Operation<RunRow> {
  checkName(id, 'A run id')
  return {
    runs: [id],
    decide: rows => {
      const row = decide(rows)
      rows.setRun(row)
      return row
    },
  }
}

/** The operation that gives an entry its outcome; `check` throws when whoever asks may not. */
export function concluding(
  name: EntryName,
  outcome: Encoded,
  check: (rows: Rows, entry: EntryRow | undefined) => void,
): Operation<EntryRow> {
  const { run, key, occurrence } = name
  return {
    runs: [run],
    entries: [name],
    decide: rows => {
      const entry = rows.entry(name)
      check(rows, entry)
      if (entry === undefined) {
        throw new RathError(
          'journal-conflict',
          `Run ${run} has no intent for ${show(key)}, occurrence ${occurrence}; write the intent first.`,
        )
      }
      if (entry.outcome !== null) {
        throw new RathError(
          'journal-conflict',
          `Run ${run} already has an outcome for ${show(key)}, occurrence ${occurrence}; it is final.`,
        )
      }
      addBlobs(rows, outcome)
      const concluded = {
        ...entry,
        outcome: outcome.text,
        concludedAt: rows.now,
        blobs: outcome.keeps.length === 0 ? entry.blobs : [...entry.blobs, ...outcome.keeps],
      }
      rows.setEntry(concluded)
      return concluded
    },
  }
}

export function heldRun(rows: Rows, id: string, fence: number): RunRow {
  const run = rows.run(id) ?? missing(id)
  if (run.fence === fence && run.owner !== null) return run
  throw new RathError(
    'run-fenced',
    `Run ${id} is at fence ${run.fence}${run.owner === null ? ', held by nobody' : `, held by ${run.owner}`}; a writer with fence ${fence} may not write to it any more.`,
    { data: { run: id, fence: run.fence, given: fence } },
  )
}

export function newRow(name: EntryName, kind: string, request: Encoded, now: number): EntryRow {
  const { run, key, occurrence } = name
  return {
    run,
    key,
    occurrence,
    kind,
    request: request.text,
    outcome: null,
    intendedAt: now,
    concludedAt: null,
    blobs: request.keeps,
  }
}

export function addBlobs(rows: Rows, { blobs }: Encoded): void {
  for (const blob of blobs) rows.addBlob(blob)
}

export function entryName(run: string, { key, occurrence }: Omit<EntryName, 'run'>): EntryName {
  checkName(run, 'A run id')
  checkName(key, 'The key of an effect')
  if (!Number.isSafeInteger(occurrence) || occurrence < 0) {
    throw new RathError(
      'invalid-argument',
      `An occurrence is a whole number from 0, not ${show(occurrence)}.`,
    )
  }
  return { run, key, occurrence }
}

export function checkName(value: unknown, what: string): void {
  if (typeof value === 'string' && value !== '' && !value.includes('\u0000') && value.isWellFormed()) return
  throw new RathError(
    'invalid-argument',
    `${what} must be non-empty text without NUL and lone surrogates, not ${show(value)}.`,
  )
}

export function checkLease(leaseMs: unknown): void {
  if (Number.isSafeInteger(leaseMs) && (leaseMs as number) >= 0) return
  throw new RathError('invalid-argument', `A lease is whole milliseconds from 0, not ${show(leaseMs)}.`)
}

const statuses: readonly unknown[] = [
  'queued',
  'running',
  'waiting',
  'needs-review',
  'done',
  'failed',
  'cancelled',
]

export function checkStatus(status: unknown): void {
  if (status === undefined || statuses.includes(status)) return
  throw new RathError(
    'invalid-argument',
    `A run's status is one of ${statuses.join(', ')}, not ${show(status)}.`,
  )
}

export function missing(id: string): never {
  throw unknownRun(id)
}

export function unknownRun(id: string): RathError {
  return new RathError('unknown-run', `There is no run ${show(id)} in this store.`)
}
