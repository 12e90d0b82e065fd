import { freezeJson } from '../../../base/json.ts'
import type { EntryRow } from '../../driver.ts'
import type { RunRow, RunStatus, SessionRow } from '../../spec.ts'

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
  session.n, session.id, session.length, session.branch, session.lineage, session.created, session.updated,
  session.version, head.id AS head, session.head AS head_n,
  (SELECT group_concat(name, ' ') FROM tag WHERE tag.session = session.n) AS tags`
export const fromSession = 'FROM session LEFT JOIN chunk AS head ON head.n = session.head'

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
