import { freezeJson } from '../../../base/json.ts'
import type { EntryRow, SessionPosition } from '../../driver.ts'
import type { RunRow, RunStatus, SessionFilter, SessionRow } from '../../spec.ts'

/** Rows as SQLite returns them, and back into the shapes of the driver contract. */
export type Sqlite = Record<string, string | number | Uint8Array | null>

export function toBytes(digest: string): Uint8Array {
  return Buffer.from(digest, 'hex')
}

export function toHex(bytes: unknown): string {
  const { buffer, byteOffset, byteLength } = bytes as Uint8Array
  return Buffer.from(buffer, byteOffset, byteLength).toString('hex')
}

export const sessionColumns = `
  session.n, session.id, session.length, session.branch, session.lineage, session.created, session.updated, head.id AS head,
  session.head AS head_n, (SELECT group_concat(name, ' ') FROM tag WHERE tag.session = session.n) AS tags`
export const fromSession = 'FROM session LEFT JOIN chunk AS head ON head.n = session.head'

/** Selects the number of a chunk by its digest in hex, `?1`. Rows that are not chunks have no digest. */
export const numberOfChunk = 'SELECT n FROM chunk WHERE id = unhex(?1) AND session > 0'

export function toSessionRow(row: Sqlite): SessionRow {
  return {
    id: row.id as string,
    head: row.head === null ? null : toHex(row.head),
    length: row.length as number,
    branch: JSON.parse(row.branch as string),
    lineage: freezeJson(JSON.parse(row.lineage as string)),
    created: row.created as number,
    updated: row.updated as number,
    tags: row.tags === null ? [] : (row.tags as string).split(' ').sort(),
  }
}

export function toRunRow(row: Sqlite): RunRow {
  return {
    id: row.id as string,
    status: row.status as RunStatus,
    owner: row.owner as string | null,
    fence: row.fence as number,
    leaseUntil: row.lease_until as number,
    input: row.input as string | null,
    output: row.output as string | null,
    data: freezeJson(JSON.parse(row.data as string)),
    ...(row.queue !== null && {
      queue: {
        name: row.queue as string,
        priority: row.priority as number,
        notBefore: row.not_before as number,
      },
    }),
    ...(row.cancel !== null && { cancel: JSON.parse(row.cancel as string) }),
    created: row.created as number,
    updated: row.updated as number,
  }
}

export function toEntryRow(row: Sqlite): EntryRow {
  return {
    run: row.run as string,
    key: row.key as string,
    occurrence: row.occurrence as number,
    kind: row.kind as string,
    request: row.request as string,
    outcome: row.outcome as string | null,
    intendedAt: row.intended as number,
    concludedAt: row.concluded as number | null,
    blobs: JSON.parse(row.blobs as string),
  }
}

/** The WHERE clause of a filter, with its values in order. */
export function sessionQuery(
  filter: SessionFilter,
  before: SessionPosition | undefined,
): { where: string; values: (string | number)[] } {
  const conditions: string[] = []
  const values: (string | number)[] = []
  const add = (condition: string, ...given: (string | number)[]) => {
    conditions.push(condition)
    values.push(...given)
  }
  if (filter.operation !== undefined)
    add("json_extract(session.lineage, '$.operation') = ?", filter.operation)
  if (filter.by !== undefined) add("json_extract(session.lineage, '$.by') = ?", filter.by)
  if (filter.label !== undefined) add("json_extract(session.lineage, '$.label') = ?", filter.label)
  if (filter.parent !== undefined)
    add('session.n IN (SELECT child FROM parent WHERE parent = ?)', filter.parent)
  if (filter.tagged !== undefined) {
    add(`${filter.tagged ? '' : 'NOT '}EXISTS (SELECT 1 FROM tag WHERE tag.session = session.n)`)
  }
  if (filter.since !== undefined) add('session.created >= ?', filter.since)
  if (filter.until !== undefined) add('session.created < ?', filter.until)
  if (before !== undefined) add('(session.created, session.id) < (?, ?)', before.created, before.id)
  return { where: conditions.length > 0 ? `WHERE ${conditions.join(' AND ')}` : '', values }
}
