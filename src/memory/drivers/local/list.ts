import { RathError, show } from '../../../base/errors.ts'
import { fits } from '../../entry.ts'
import { lanesSeenFrom, seesLane } from '../../lane.ts'
import type { Memory, MemoryFilter, MemoryPage } from '../../spec.ts'
import type { Database, Row, Value } from './database.ts'
import type { Names } from './names.ts'
import { toMemory } from './rows.ts'

type Listing = { readonly db: Database; readonly names: Names; readonly now: number }

/** The newest first; inside a read. */
export function listEntries(
  listing: Listing,
  { limit = 50, cursor, ...filter }: MemoryFilter & { limit?: number; cursor?: string },
): MemoryPage {
  if (!Number.isInteger(limit) || limit < 1 || limit > 1_000) {
    throw new RathError('invalid-argument', `limit is a whole number from 1 to 1,000, not ${show(limit)}.`)
  }
  const found: Row[] = []
  const entries: Memory[] = []
  for (const [row, entry] of matching(listing, filter, cursor === undefined ? {} : { cursor })) {
    if (entries.length === limit) {
      const last = found.at(-1) as Row
      return { entries, cursor: `${last.at}:${last.n}` }
    }
    found.push(row)
    entries.push(entry)
  }
  return { entries }
}

/** Every entry that a filter lets through, with its row, the newest first. To `forget`, a lane means what waits on it or below. */
export function* matching(
  { db, names, now }: Listing,
  filter: MemoryFilter,
  { cursor, forget = false }: { readonly cursor?: string; readonly forget?: boolean } = {},
): Generator<readonly [Row, Memory]> {
  const { where, values } = conditions(names, filter, now)
  if (!forget) {
    where.push('lane IN (SELECT value FROM json_each(?))')
    values.push(
      JSON.stringify([0, ...lanesSeenFrom(filter.lane ?? '').map(lane => names.find('lane', lane))]),
    )
  }
  if (cursor !== undefined) {
    const [at, n] = parseCursor(cursor)
    where.push('(at < ? OR (at = ? AND n < ?))')
    values.push(at, at, n)
  }
  const sql = `SELECT * FROM entry WHERE ${where.join(' AND ')} ORDER BY at DESC, n DESC`
  for (const row of db.iterate(sql, ...values)) {
    const entry = toMemory(row, names, db.path)
    if (forget ? fitsToForget(entry, filter) : fits(entry, filter)) yield [row, entry]
  }
}

function fitsToForget(entry: Memory, { lane, ...filter }: MemoryFilter): boolean {
  const { lane: own = '' } = entry
  if (lane !== undefined && (own === '' || !seesLane(own, lane))) return false
  return fits(entry, { ...filter, lane: own })
}

/** What SQLite can tell by its indexes; `fits` tells the rest. */
function conditions(names: Names, filter: MemoryFilter, now: number): { where: string[]; values: Value[] } {
  const where = ['(expires IS NULL OR expires > ?)']
  const values: Value[] = [now]
  const among = (column: string, numbers: readonly number[]) => {
    where.push(`${column} IN (SELECT value FROM json_each(?))`)
    values.push(JSON.stringify(numbers))
  }
  if (filter.scope !== undefined)
    among(
      'scope',
      [filter.scope].flat().flatMap(scope => names.scopesUnder(scope)),
    )
  if (filter.category !== undefined)
    among(
      'category',
      [filter.category].flat().map(category => names.find('category', category)),
    )
  if (filter.since !== undefined) where.push('at >= ?') && values.push(filter.since)
  if (filter.until !== undefined) where.push('at < ?') && values.push(filter.until)
  return { where, values }
}

function parseCursor(cursor: unknown): [number, number] {
  const [at, n] = typeof cursor === 'string' ? cursor.split(':').map(Number) : []
  if (Number.isFinite(at) && Number.isInteger(n)) return [at as number, n as number]
  throw new RathError(
    'invalid-argument',
    `${show(cursor)} is no cursor of a list; take it from the page before.`,
  )
}
