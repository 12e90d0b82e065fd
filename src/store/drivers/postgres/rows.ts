import { freezeJson } from '../../../base/json.ts'
import type { EntryRow } from '../../driver.ts'
import type { RunRow, RunStatus, SessionRow } from '../../spec.ts'
import { fromText, fromTextOrNull } from './text.ts'

export const sessionColumns = `
  session.n, session.id, session.length, session.branch, session.lineage, session.created, session.updated,
  session.changed::text AS changed, encode(head.id, 'hex') AS head, session.head AS head_n,
  (SELECT array_agg(name ORDER BY name) FROM openrath.tag WHERE tag.session = session.n) AS tags`
export const fromSession = 'FROM openrath.session LEFT JOIN openrath.chunk AS head ON head.n = session.head'
/** Named one by one: a prepared `SELECT *` breaks when a newer version adds a column. */
export const runColumns =
  'n, id, status, owner, fence, lease_until, input, output, data, created, updated, queue, priority, not_before, cancel, changed::text AS changed'
export const entryColumns = 'run, key, occurrence, kind, request, outcome, intended, concluded, blobs'

/** A row of the table, as the columns above return it. */
export interface SessionRecord {
  readonly n: number
  readonly id: string
  readonly head: string | null
  readonly head_n: number | null
  readonly length: number
  readonly branch: string
  readonly lineage: string
  readonly created: number
  readonly updated: number
  readonly changed: string
  readonly tags: readonly string[] | null
}

export interface RunColumns {
  readonly n: number
  readonly changed: string
  readonly queue: string | null
  readonly priority: number
  readonly not_before: number
  readonly cancel: string | null
  readonly id: string
  readonly status: RunStatus
  readonly owner: string | null
  readonly fence: number
  readonly lease_until: number
  readonly input: string | null
  readonly output: string | null
  readonly data: string
  readonly created: number
  readonly updated: number
}

export interface EntryRecord {
  readonly run: string
  readonly key: string
  readonly occurrence: number
  readonly kind: string
  readonly request: string
  readonly outcome: string | null
  readonly intended: number
  readonly concluded: number | null
  readonly blobs: readonly string[]
}

export function toSessionRow(row: SessionRecord): SessionRow {
  return {
    id: fromText(row.id),
    head: row.head,
    length: row.length,
    branch: fromText(row.branch),
    lineage: freezeJson(JSON.parse(row.lineage)),
    created: row.created,
    updated: row.updated,
    tags: (row.tags ?? []).map(fromText).sort(),
  }
}

export function toRunRow(row: RunColumns): RunRow {
  return {
    id: fromText(row.id),
    status: row.status,
    owner: fromTextOrNull(row.owner),
    fence: row.fence,
    leaseUntil: row.lease_until,
    input: fromTextOrNull(row.input),
    output: fromTextOrNull(row.output),
    data: freezeJson(JSON.parse(row.data)),
    ...(row.queue !== null && {
      queue: { name: fromText(row.queue), priority: row.priority, notBefore: row.not_before },
    }),
    ...(row.cancel !== null && { cancel: JSON.parse(row.cancel) }),
    created: row.created,
    updated: row.updated,
  }
}

export function toEntryRow(row: EntryRecord): EntryRow {
  return {
    run: fromText(row.run),
    key: fromText(row.key),
    occurrence: row.occurrence,
    kind: fromText(row.kind),
    request: row.request,
    outcome: row.outcome,
    intendedAt: row.intended,
    concludedAt: row.concluded,
    blobs: row.blobs,
  }
}
