import { newId } from '../../../base/ids.ts'
import { changedEntry, newEntry } from '../../entry.ts'
import type { Memory, MemoryChange, NewMemory } from '../../spec.ts'
import { chunkKey } from '../../turns.ts'
import type { Database, Row } from './database.ts'
import { labelsOf } from './filter.ts'
import type { Names } from './names.ts'
import { isScattered, scatterAround } from './neighbours.ts'
import { toMemory } from './rows.ts'
import { numberIn, setNumber, tailWords } from './word-index.ts'

export interface Writing {
  readonly db: Database
  readonly names: Names
  readonly now: number
}

/** Keeps checked entries, inside a write. Those whose key is there come back as they stand, and are not in `fresh`. */
export function writeEntries(
  writing: Writing,
  entries: readonly NewMemory[],
): { readonly kept: Memory[]; readonly fresh: Memory[] } {
  const { db, names, now } = writing
  const fresh: Memory[] = []
  let next = numberIn(db, 'next') || 1
  const kept = entries.map(given => {
    const entry = newEntry(given, newId(now), now)
    const known = entry.key === undefined ? undefined : holderOf(writing, entry)
    if (known) return toMemory(known, names, db.path)
    insert(writing, entry, next++)
    fresh.push(entry)
    return entry
  })
  if (fresh.length > 0) setNumber(db, 'next', next)
  return { kept, fresh }
}

/** Replaces what an entry says, inside a write. It gets a new number: its words are others now. */
export function updateEntry(writing: Writing, row: Row, change: MemoryChange): Memory {
  const { db, names, now } = writing
  const old = toMemory(row, names, db.path)
  const entry = changedEntry(old, change, now)
  const body = JSON.stringify({ ...old, replaced: now })
  db.run('INSERT OR REPLACE INTO revision VALUES (?, ?, ?)', old.id, old.version, body)
  removeNumber(db, row.n as number)
  const next = numberIn(db, 'next')
  insert(writing, entry, next)
  setNumber(db, 'next', next + 1)
  return entry
}

/** Ends an entry, inside a write: its texts are gone from the tables, old ones too, and its words leave the index with the next merge. */
export function removeEntry(db: Database, row: Row): void {
  removeNumber(db, row.n as number)
  db.run('DELETE FROM revision WHERE id = ?', row.id as string)
}

/** The same because somebody wants it: a later commit of the session it came from leaves it out. */
export function forgetEntry(db: Database, row: Row): void {
  removeEntry(db, row)
  if (!(row.key as string | null)?.startsWith(chunkKey)) return
  db.run('INSERT OR IGNORE INTO forgotten VALUES (?, ?)', row.key as string, row.scope as number)
}

/** What has ended by itself goes like what is forgotten: some of it with each write, so that none of them has to wait for all of it. */
export function removeEnded({ db, now }: Writing, most: number): void {
  for (const row of db.all('SELECT n, id FROM entry WHERE expires <= ? LIMIT ?', now, most))
    removeEntry(db, row)
}

/** Changes what is a column by itself, without a new number. */
export function relabel(db: Database, n: number, change: { readonly lane?: 0; readonly rejected?: 1 }): void {
  if (change.lane !== undefined) db.run('UPDATE entry SET lane = ? WHERE n = ?', change.lane, n)
  if (change.rejected !== undefined) db.run('UPDATE entry SET rejected = ? WHERE n = ?', change.rejected, n)
  db.run('INSERT INTO change (n) VALUES (?)', n)
}

/** Who has an entry's key in its scope. One that has ended makes room. */
function holderOf({ db, names, now }: Writing, { key, scope }: Memory): Row | undefined {
  const row = db.get(
    'SELECT * FROM entry WHERE key = ? AND scope = ?',
    key as string,
    names.find('scope', scope),
  )
  if (row === undefined || row.expires === null || (row.expires as number) > now) return row
  removeEntry(db, row)
  return undefined
}

function removeNumber(db: Database, n: number): void {
  db.run('DELETE FROM entry WHERE n = ?', n)
  db.run('DELETE FROM tail WHERE n = ?', n)
  db.run('DELETE FROM vector WHERE n = ?', n)
  db.run('DELETE FROM vector_exact WHERE n = ?', n)
  db.run('INSERT INTO change (n) VALUES (?)', n)
}

function insert({ db, names }: Writing, entry: Memory, n: number): void {
  const { words, length } = tailWords(entry.text, labelsOf(entry.tags, entry.metadata))
  const { series = '', index = 0, chunks = [] } = entry.source
  const seriesNumber = series === '' ? 0 : names.number('series', series)
  const isFar = seriesNumber !== 0 && isScattered(db, seriesNumber, index, n)
  if (isFar) scatterAround(db, seriesNumber, index)
  db.run(
    'INSERT INTO entry VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)',
    n,
    entry.id,
    names.number('scope', entry.scope),
    names.number('category', entry.category),
    entry.lane === undefined ? 0 : names.number('lane', entry.lane),
    seriesNumber,
    index,
    entry.standing === 'rejected' ? 1 : 0,
    isFar ? 1 : 0,
    length,
    entry.at,
    entry.written,
    entry.expires ?? null,
    entry.version,
    entry.key ?? null,
    JSON.stringify(entry.tags),
    JSON.stringify(entry.metadata),
    JSON.stringify(entry.source),
    entry.text,
  )
  if (words !== '') db.run('INSERT INTO tail VALUES (?, ?)', n, words)
  db.run('INSERT INTO change (n) VALUES (?)', n)
  // What was made of one chunk is found by its key.
  if (entry.key?.startsWith(chunkKey)) return
  for (const chunk of chunks) db.run('INSERT OR IGNORE INTO origin VALUES (?, ?)', chunk, entry.id)
}
