import { freezeJson } from '../../../base/json.ts'
import type { EntryRow } from '../../driver.ts'
import type { RunRow, RunStatus, SessionRow } from '../../spec.ts'
import { folded } from './tail.ts'

/** Rows as SQLite returns them, and back into the shapes of the driver contract. */
export type Sqlite = Record<string, string | number | Uint8Array | null>

export function toBytes(digest: string): Uint8Array {
  return Buffer.from(digest, 'hex')
}

export function toHex(bytes: unknown): string {
  const { buffer, byteOffset, byteLength } = bytes as Uint8Array
  return Buffer.from(buffer, byteOffset, byteLength).toString('hex')
}

/** A session's newest chunk is the last one in the tail that it recorded, or else the one that its row names. */
export const sessionColumns = `
  session.n, session.id, session.branch, session.lineage, session.created, head.id AS head, head.n AS head_n,
  iif(head.n > ${folded} AND head.session = session.n, head.position + 1, session.length) AS length,
  iif(head.n > ${folded} AND head.session = session.n, head.at, session.updated) AS updated,
  (SELECT group_concat(name, ' ') FROM tag WHERE tag.session = session.n) AS tags`
export const fromSession = `
  FROM session LEFT JOIN chunk AS head ON head.n = coalesce(
    (SELECT max(tail.n) FROM chunk AS tail WHERE tail.n > ${folded} AND tail.session = session.n), session.head)`

/** The same for many sessions: the tail is read once for all of them. */
export const fromSessions = `
  FROM session
  LEFT JOIN (SELECT session, max(n) AS n FROM chunk WHERE n > ${folded} GROUP BY session) AS tail ON tail.session = session.n
  LEFT JOIN chunk AS head ON head.n = coalesce(tail.n, session.head)`

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
