import { RathError, show } from '../../../base/errors.ts'
import type { SessionRow } from '../../spec.ts'
import type { Database } from './database.ts'
import { fromSession, type Sqlite, sessionColumns, toSessionRow } from './rows.ts'

const page = 1000

/**
 * Chunks are numbered in the order in which they were committed and name the session that recorded them, so their numbers are a
 * log of changes that costs an append nothing. A change that recorded no chunk, such as a kept fork, has a row among them that is no
 * chunk, with the session's number below zero; format 2 had a row for it in `touched`, with the number of the newest chunk before it.
 */
interface Cursor {
  readonly chunk: number
  readonly touched: number
}

interface Change {
  readonly session: number
  readonly chunk: number
  /** 0 for a chunk. */
  readonly touched: number
}

export async function changes(
  db: Database,
  given: string | undefined,
): Promise<{ rows: SessionRow[]; cursor: string }> {
  let cursor = given === undefined ? await newest(db) : parseCursor(given)
  for (;;) {
    const found = given === undefined ? [] : await db.read(() => changesBehind(db, cursor))
    const rows = found.length > 0 ? await db.read(() => sessionsOf(db, found)) : []
    cursor = found.reduce(furthest, cursor)
    // All of a page may be about sessions that were deleted since.
    if (rows.length > 0 || found.length === 0) return { rows, cursor: `${cursor.chunk}:${cursor.touched}` }
  }
}

async function newest(db: Database): Promise<Cursor> {
  const sql = `SELECT (SELECT coalesce(max(n), 0) FROM chunk) AS chunk, (SELECT coalesce(max(n), 0) FROM touched) AS touched`
  return db.read(() => db.sql(sql).get() as unknown as Cursor)
}

/** In order, up to where both logs were read. */
function changesBehind(db: Database, { chunk, touched }: Cursor): Change[] {
  const recorded = db
    .sql('SELECT abs(session) AS session, n AS chunk, 0 AS touched FROM chunk WHERE n > ? ORDER BY n LIMIT ?')
    .all(chunk, page) as unknown as Change[]
  const others = db
    .sql('SELECT session, after AS chunk, n AS touched FROM touched WHERE n > ? ORDER BY n LIMIT ?')
    .all(touched, page) as unknown as Change[]
  const end = Math.min(endOf(recorded), endOf(others))
  return [...recorded, ...others]
    .filter(change => change.chunk <= end)
    .sort((a, b) => a.chunk - b.chunk || a.touched - b.touched)
}

function endOf(found: readonly Change[]): number {
  return found.length < page ? Number.POSITIVE_INFINITY : (found.at(-1) as Change).chunk
}

function furthest(cursor: Cursor, change: Change): Cursor {
  return {
    chunk: change.touched === 0 ? change.chunk : cursor.chunk,
    touched: Math.max(cursor.touched, change.touched),
  }
}

/** Each session once, where it changed last. */
function sessionsOf(db: Database, found: readonly Change[]): SessionRow[] {
  const numbers = [...new Set(found.map(change => change.session).reverse())].reverse()
  return numbers.flatMap(n => {
    const row = db.sql(`SELECT ${sessionColumns} ${fromSession} WHERE session.n = ?`).get(n)
    return row === undefined ? [] : [toSessionRow(row as Sqlite)]
  })
}

const form = /^(\d{1,15}):(\d{1,15})$/

export function isCursor(text: string): boolean {
  return form.test(text)
}

function parseCursor(text: string): Cursor {
  const [, chunk, touched] = form.exec(text) ?? []
  if (chunk !== undefined && touched !== undefined) return { chunk: Number(chunk), touched: Number(touched) }
  throw new RathError('invalid-argument', `${show(text)} is not a cursor of this store's changes.`)
}
