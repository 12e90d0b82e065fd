import { RathError, show } from '../base/errors.ts'
import type { Operation } from './commit.ts'
import { type EntryName, type EntryRow, isRefusal, type Rows, type RunRowWrite } from './driver.ts'
import type { RunChange, RunRow } from './spec.ts'

/** Rows of a driver that looks at an entry before it changes it. */
export interface RunTables extends Rows {
  entry(name: EntryName): EntryRow | undefined
  setEntry(row: EntryRow): void
}

/** `Rows.commitRun` for such a driver. */
export function commitRun(
  rows: RunTables,
  id: string,
  fence: number | null,
  writes: readonly RunRowWrite[],
): unknown {
  let run = rows.run(id)
  if (!isHeld(run, fence)) return notHeld(run, id, fence)
  let refusal = keepSessions(rows, writes)
  for (const write of writes) {
    if (write.kind === 'put') continue
    if (!isHeld(run, fence)) return refusal ?? notHeld(run, id, fence)
    if (write.kind === 'update') {
      run = changedRun(run, write.change, rows.now)
      rows.setRun(run)
      continue
    }
    const { key, occurrence } = write.kind === 'intend' ? write.entry : write
    const name = { run: id, key, occurrence }
    const entry = rows.entry(name)
    if (write.kind === 'intend') {
      if (entry) continue
      rows.setEntry(newEntry(id, write, rows.now))
    } else {
      const refused = outcomeRefusal(name, entry, write)
      refusal ??= refused
      if (refused || entry === undefined) continue
      const blobs = write.keeps.length === 0 ? entry.blobs : [...entry.blobs, ...write.keeps]
      rows.setEntry({ ...entry, outcome: write.outcome, concludedAt: rows.now, blobs })
    }
    for (const payload of write.payloads) rows.addBlob(payload)
  }
  return refusal
}

/** Sessions come first: one that counts on chunks which are gone fails the transaction before anything else was changed. */
export function keepSessions(rows: Rows, writes: readonly RunRowWrite[]): unknown {
  let refusal: unknown
  for (const write of writes) {
    if (write.kind !== 'put') continue
    try {
      write.keep(rows)
    } catch (error) {
      if (!isRefusal(error)) throw error
      refusal ??= error
    }
  }
  return refusal
}

function isHeld(run: RunRow | undefined, fence: number | null): run is RunRow {
  return run !== undefined && (fence === null || (run.fence === fence && run.owner !== null))
}

export function notHeld(run: RunRow | undefined, id: string, fence: number | null): RathError {
  if (run === undefined) return unknownRun(id)
  return new RathError(
    'run-fenced',
    `Run ${id} is at fence ${run.fence}${run.owner === null ? ', held by nobody' : `, held by ${run.owner}`}; a writer with fence ${fence} may not write to it any more.`,
    { data: { run: id, fence: run.fence, given: fence } },
  )
}

export function changedRun(run: RunRow, change: RunChange, now: number): RunRow {
  return {
    ...run,
    status: change.status ?? run.status,
    output: change.output ?? run.output,
    data: change.data ?? run.data,
    ...(change.release && { owner: null, leaseUntil: 0 }),
    updated: now,
  }
}

/** Why an entry is not given this outcome; undefined when it is. */
export function outcomeRefusal(
  { run, key, occurrence }: EntryName,
  entry: EntryRow | undefined,
  { of }: Extract<RunRowWrite, { kind: 'conclude' }>,
): RathError | undefined {
  const conflict = (text: string) => new RathError('journal-conflict', text)
  if (entry === undefined) {
    return conflict(
      `Run ${run} has no intent for ${show(key)}, occurrence ${occurrence}; write the intent first.`,
    )
  }
  if (of !== undefined && entry.kind !== of) {
    return conflict(
      `The entry ${show(key)} of run ${run} is of kind ${entry.kind}; only an approval is decided.`,
    )
  }
  if (entry.outcome === null) return undefined
  return conflict(
    `Run ${run} already has an outcome for ${show(key)}, occurrence ${occurrence}; it is final.`,
  )
}

function newEntry(
  run: string,
  { entry, keeps: blobs }: Extract<RunRowWrite, { kind: 'intend' }>,
  now: number,
): EntryRow {
  return { ...entry, run, outcome: null, intendedAt: now, concludedAt: null, blobs }
}

/** Whether nothing about a run is new but how long its lease lasts: nobody who follows it has to know. */
export function isRenewal(before: RunRow, after: RunRow): boolean {
  const { status, owner, fence, output, data, cancel } = before
  return (
    status === after.status &&
    owner === after.owner &&
    fence === after.fence &&
    output === after.output &&
    data === after.data &&
    cancel === after.cancel
  )
}

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

export function heldRun(rows: Rows, id: string, fence: number): RunRow {
  const run = rows.run(id)
  if (isHeld(run, fence)) return run
  throw notHeld(run, id, fence)
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
