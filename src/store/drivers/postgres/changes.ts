import { RathError, show } from '../../../base/errors.ts'
import type { RunRow, SessionRow } from '../../spec.ts'
import type { Pool } from './pool.ts'
import {
  fromSession,
  type RunColumns,
  runColumns,
  type SessionRecord,
  sessionColumns,
  toRunRow,
  toSessionRow,
} from './rows.ts'

const page = 1000

/**
 * What a follower has seen, as a snapshot in the server's own form: `xmin:xmax:running`. Transactions do not become visible in the order of
 * their numbers; a snapshot says for each whether it was visible, so that one which was still running then is told about when it is
 * done. In the middle of a long answer, the cursor also holds the snapshot being read and the place reached in it.
 */
interface Cursor {
  readonly seen: string
  readonly reading?: { readonly until: string; readonly changed: string; readonly n: string }
}

/** A table whose rows say in which transaction they changed last. */
export interface Followed<Found extends { readonly n: number; readonly changed: string }, Row> {
  readonly table: 'session' | 'run'
  readonly columns: string
  readonly from: string
  readonly toRow: (found: Found) => Row
}

export const followedSessions: Followed<SessionRecord, SessionRow> = {
  table: 'session',
  columns: sessionColumns,
  from: fromSession,
  toRow: toSessionRow,
}

export const followedRuns: Followed<RunColumns, RunRow> = {
  table: 'run',
  columns: runColumns,
  from: 'FROM openrath.run',
  toRow: toRunRow,
}

export async function changes<Found extends { readonly n: number; readonly changed: string }, Row>(
  pool: Pool,
  { table, columns, from, toRow }: Followed<Found, Row>,
  given: string | undefined,
): Promise<{ rows: Row[]; cursor: string }> {
  if (given === undefined) return { rows: [], cursor: await visibleNow(pool, table) }
  const { seen, reading } = parseCursor(given)
  const until = reading?.until ?? (await visibleNow(pool, table))
  if (until === seen) return { rows: [], cursor: seen }
  const found = await pool.query<Found>(
    `SELECT ${columns} ${from}
     WHERE ${table}.changed >= pg_snapshot_xmin($1::pg_snapshot) AND ${table}.changed < pg_snapshot_xmax($2::pg_snapshot)
       AND (${table}.changed, ${table}.n) > ($3::xid8, $4::bigint)
       AND NOT pg_visible_in_snapshot(${table}.changed, $1::pg_snapshot)
       AND pg_visible_in_snapshot(${table}.changed, $2::pg_snapshot)
     ORDER BY ${table}.changed, ${table}.n LIMIT ${page}`,
    [seen, until, reading?.changed ?? '0', reading?.n ?? '0'],
  )
  const last = found.length === page ? found.at(-1) : undefined
  const cursor = last ? `${seen};${until};${last.changed};${last.n}` : until
  return { rows: found.map(toRow), cursor }
}

/**
 * The snapshot of this moment, cut off behind the newest change in it. A transaction that left nothing behind may have its
 * number given out again after a crash of the server; one that left a change behind cannot.
 */
async function visibleNow(pool: Pool, table: 'session' | 'run'): Promise<string> {
  const [row] = await pool.query<{ snapshot: string; newest: string | null }>(
    `SELECT pg_current_snapshot()::text AS snapshot, (SELECT max(changed)::text FROM openrath.${table}) AS newest`,
  )
  const { snapshot, newest } = row as { snapshot: string; newest: string | null }
  return cutOff(snapshot, BigInt(newest ?? 0) + 1n)
}

export function cutOff(snapshot: string, end: bigint): string {
  const [xmin = '', xmax = '', running = ''] = snapshot.split(':')
  const least = (a: bigint, b: bigint) => (a < b ? a : b)
  const last = least(BigInt(xmax), end)
  const kept = running.split(',').filter(xid => xid !== '' && BigInt(xid) < last)
  return `${least(BigInt(xmin), last)}:${last}:${kept.join(',')}`
}

const snapshot = '[1-9]\\d*:[1-9]\\d*:[\\d,]*'
const form = new RegExp(`^(${snapshot})(;(${snapshot});(\\d+);(\\d+))?$`)

export function isCursor(text: string): boolean {
  return form.test(text)
}

function parseCursor(text: string): Cursor {
  const [match, seen, , until, changed, n] = form.exec(text) ?? []
  if (match === undefined || seen === undefined)
    throw new RathError('invalid-argument', `${show(text)} is not a cursor of this store's changes.`)
  return until && changed && n ? { seen, reading: { until, changed, n } } : { seen }
}
