import { RathError, show } from '../../../base/errors.ts'
import { checkListLimit } from '../../check.ts'
import { fits } from '../../entry.ts'
import { seesLane } from '../../lane.ts'
import type { Memory, MemoryFilter, MemoryPage } from '../../spec.ts'
import type { Database, Row, Value } from './database.ts'
import { accepting } from './filter.ts'
import type { Names } from './names.ts'
import { rowByNumber, toMemory } from './rows.ts'
import type { WordIndex } from './word-index.ts'

type Listing = { readonly db: Database; readonly names: Names; readonly now: number }

/** The newest first; inside a read. The columns say which they are, so that only the texts of a page are read. */
export function listEntries(
  listing: Listing & { readonly index: WordIndex },
  { limit = 50, cursor, ...filter }: MemoryFilter & { limit?: number; cursor?: string },
): MemoryPage {
  checkListLimit(limit)
  const { db, names, index } = listing
  const numbers = newest(listing, filter, limit + 1, cursor === undefined ? [] : parseCursor(cursor))
  const entries = numbers.slice(0, limit).map(n => toMemory(rowByNumber(db, n) as Row, names, db.path))
  const last = numbers[limit - 1]
  return numbers.length > limit && last !== undefined
    ? { entries, cursor: `${index.columns.at[last]}:${last}` }
    : { entries }
}

/** The numbers of the newest entries behind a time and a number. Of those with the same time, the highest number first. */
function newest(
  listing: Listing & { readonly index: WordIndex },
  filter: MemoryFilter,
  most: number,
  [behind = Number.POSITIVE_INFINITY, below = 0]: readonly number[],
): number[] {
  const { at, size } = listing.index.columns
  const { accepts } = accepting(filter, listing)
  const found: number[] = []
  for (let n = size - 1; n > 0; n--) {
    const time = at[n] as number
    if (time > behind || (time === behind && n >= below)) continue
    if (found.length === most && time <= (at[found[most - 1] as number] as number)) continue
    if (!accepts(n)) continue
    let place = found.length
    while (place > 0 && (at[found[place - 1] as number] as number) < time) place--
    found.splice(place, 0, n)
    if (found.length > most) found.pop()
  }
  return found
}

/** The rows of all that a filter ends. A lane means what waits on it or below. */
export function* toForget({ db, names, now }: Listing, filter: MemoryFilter): Generator<Row> {
  const { where, values } = conditions(names, filter, now)
  for (const row of db.iterate(`SELECT * FROM entry WHERE ${where.join(' AND ')}`, ...values)) {
    if (fitsToForget(toMemory(row, names, db.path), filter)) yield row
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
