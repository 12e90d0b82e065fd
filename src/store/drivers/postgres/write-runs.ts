import type { EntryName, EntryRow } from '../../driver.ts'
import type { RunRow } from '../../spec.ts'
import type { Statement } from './connection.ts'
import type { EntryRecord, RunColumns } from './rows.ts'
import { toText, toTextOrNull } from './text.ts'

/** Writes runs. Those that were loaded are locked and updated; any other must not exist yet. */
export function* writeRuns(rows: readonly RunRow[], loaded: readonly RunColumns[]): Generator<Statement> {
  if (rows.length === 0) return
  const known = new Set(loaded.map(row => row.id))
  const isKnown = (row: RunRow) => known.has(toText(row.id))
  const columns = (of: readonly RunRow[]) => [
    of.map(row => toText(row.id)),
    of.map(row => row.status),
    of.map(row => toTextOrNull(row.owner)),
    of.map(row => row.fence),
    of.map(row => row.leaseUntil),
    of.map(row => toTextOrNull(row.input)),
    of.map(row => toTextOrNull(row.output)),
    of.map(row => JSON.stringify(row.data)),
    of.map(row => row.created),
    of.map(row => row.updated),
    of.map(row => toTextOrNull(row.queue?.name)),
    of.map(row => row.queue?.priority ?? 0),
    of.map(row => row.queue?.notBefore ?? 0),
    of.map(row => (row.cancel ? JSON.stringify(row.cancel) : null)),
  ]
  const given = `unnest($1::text[], $2::text[], $3::text[], $4::bigint[], $5::double precision[], $6::text[], $7::text[],
    $8::text[], $9::bigint[], $10::bigint[], $11::text[], $12::bigint[], $13::double precision[], $14::text[])`
  const names =
    '(id, status, owner, fence, lease_until, input, output, data, created, updated, queue, priority, not_before, cancel)'

  const fresh = rows.filter(row => !isKnown(row))
  if (fresh.length > 0) {
    yield {
      inserts: fresh.length,
      text: `INSERT INTO openrath.run ${names} SELECT * FROM ${given} ON CONFLICT (id) DO NOTHING`,
      values: columns(fresh),
    }
  }
  const changed = rows.filter(isKnown)
  if (changed.length === 0) return
  yield {
    text: `UPDATE openrath.run SET status = given.status, owner = given.owner, fence = given.fence, lease_until = given.lease_until,
       output = given.output, data = given.data, updated = given.updated, cancel = given.cancel,
       changed = CASE WHEN (run.status, run.owner, run.fence, run.output, run.data, run.cancel)
         IS NOT DISTINCT FROM (given.status, given.owner, given.fence, given.output, given.data, given.cancel)
         THEN run.changed ELSE pg_current_xact_id() END
     FROM ${given} AS given ${names} WHERE run.id = given.id`,
    values: columns(changed),
  }
}

/** Writes journal entries in the order of their intents. */
export function* writeEntries(
  rows: readonly EntryRow[],
  loaded: readonly EntryRecord[],
): Generator<Statement> {
  if (rows.length === 0) return
  const known = new Set(loaded.map(entryKey))
  const isKnown = (row: EntryRow) =>
    known.has(entryKey({ ...row, run: toText(row.run), key: toText(row.key) }))
  const names = (of: readonly EntryRow[]) => [
    of.map(row => toText(row.run)),
    of.map(row => toText(row.key)),
    of.map(row => row.occurrence),
  ]
  const results = (of: readonly EntryRow[]) => [
    of.map(row => row.outcome),
    of.map(row => row.concludedAt),
    // An array of lists would be taken for one long list.
    of.map(row => row.blobs.join(' ')),
  ]

  const fresh = rows.filter(row => !isKnown(row))
  if (fresh.length > 0) {
    yield {
      inserts: fresh.length,
      text: `INSERT INTO openrath.entry (run, key, occurrence, outcome, concluded, blobs, kind, request, intended)
       SELECT run, key, occurrence, outcome, concluded, string_to_array(blobs, ' '), kind, request, intended
       FROM unnest($1::text[], $2::text[], $3::bigint[], $4::text[], $5::bigint[], $6::text[], $7::text[], $8::text[], $9::bigint[])
         AS given (run, key, occurrence, outcome, concluded, blobs, kind, request, intended)
       ON CONFLICT (run, key, occurrence) DO NOTHING`,
      values: [
        ...names(fresh),
        ...results(fresh),
        fresh.map(row => toText(row.kind)),
        fresh.map(row => row.request),
        fresh.map(row => row.intendedAt),
      ],
    }
  }
  const changed = rows.filter(isKnown)
  if (changed.length === 0) return
  yield {
    text: `UPDATE openrath.entry SET outcome = given.outcome, concluded = given.concluded,
       blobs = string_to_array(given.blobs, ' ')
     FROM unnest($1::text[], $2::text[], $3::bigint[], $4::text[], $5::bigint[], $6::text[])
       AS given (run, key, occurrence, outcome, concluded, blobs)
     WHERE entry.run = given.run AND entry.key = given.key AND entry.occurrence = given.occurrence`,
    values: [...names(changed), ...results(changed)],
  }
}

function entryKey({ run, key, occurrence }: EntryName): string {
  return `${run}\u0000${key}\u0000${occurrence}`
}
