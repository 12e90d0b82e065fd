import { tuning } from '../../tuning.ts'
import { scattered } from './columns.ts'
import type { Database } from './database.ts'
import type { Accepts } from './filter.ts'
import type { WordIndex } from './word-index.ts'

const { reach } = tuning
/** Numbers on either side among which neighbours are looked for: conversations that were written at the same time interleave. */
const nearby = 16

/**
 * Writes the numbers of the entries around one in its series that the asker may see: those before it from the nearest on, then those
 * behind it, `reach` places each; 0 where there is none.
 */
export function fillNeighbours(
  n: number,
  into: Int32Array,
  offset: number,
  { index, db, visible }: { readonly index: WordIndex; readonly db: Database; readonly visible: Accepts },
): void {
  const { series, place, flags, size } = index.columns
  const own = series[n] as number
  if (own === 0) return
  if ((flags[n] as number) & scattered) {
    into.set(lookUp(db, sqlBefore, own, place[n] as number, visible), offset)
    into.set(lookUp(db, sqlAfter, own, place[n] as number, visible), offset + reach)
    return
  }
  const here = place[n] as number
  const first = Math.max(1, n - nearby)
  let found = 0
  for (let other = n - 1; other >= first && found < reach; other--) {
    if (series[other] === own && (place[other] as number) < here && visible(other))
      into[offset + found++] = other
  }
  const last = Math.min(size - 1, n + nearby)
  found = 0
  for (let other = n + 1; other <= last && found < reach; other++) {
    if (series[other] === own && (place[other] as number) > here && visible(other))
      into[offset + reach + found++] = other
  }
}

const sqlBefore =
  'SELECT n FROM entry WHERE series = ? AND series <> 0 AND place < ? ORDER BY place DESC LIMIT ?'
const sqlAfter = 'SELECT n FROM entry WHERE series = ? AND series <> 0 AND place > ? ORDER BY place LIMIT ?'

function lookUp(db: Database, sql: string, series: number, place: number, visible: Accepts): number[] {
  const numbers = db.all(sql, series, place, reach * 2).map(row => row.n as number)
  return numbers.filter(visible).slice(0, reach)
}

/** At the time of a write: whether an entry's neighbours will not be found beside it. */
export function isScattered(db: Database, series: number, place: number, n: number): boolean {
  const behind = db.get(
    'SELECT 1 FROM entry WHERE series = ? AND series <> 0 AND place >= ? LIMIT 1',
    series,
    place,
  )
  if (behind) return true
  const third =
    db.get(`${sqlBefore} OFFSET ?`, series, place, 1, reach - 1) ?? db.get(sqlBefore, series, place, 1)
  return third !== undefined && n - (third.n as number) > nearby
}

/** Those around an entry that was put far from them have to look for it, too. */
export function scatterAround(db: Database, series: number, place: number): void {
  for (const sql of [sqlBefore, sqlAfter]) {
    for (const { n } of db.all(sql, series, place, reach)) {
      if (db.get('SELECT 1 FROM entry WHERE n = ? AND scattered = 1', n as number)) continue
      db.run('UPDATE entry SET scattered = 1 WHERE n = ?', n as number)
      db.run('INSERT INTO change (n) VALUES (?)', n as number)
    }
  }
}
