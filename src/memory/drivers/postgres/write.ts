import { newId } from '../../../base/ids.ts'
import { changedEntry, newEntry } from '../../entry.ts'
import type { Memory, MemoryChange, NewMemory } from '../../spec.ts'
import { chunkKey } from '../../turns.ts'
import { wordsOf } from '../../words.ts'
import { labelsOf } from './filter.ts'
import type { Queries } from './pool.ts'
import { columns, type EntryRow, toMemory } from './rows.ts'

export interface Writing {
  readonly queries: Queries
  readonly place: number
  readonly now: number
}

/** As many rows as go into one statement. */
const together = 500

/** Makes this transaction the only writer of its store. */
export async function lockPlace({ queries, place }: Writing): Promise<void> {
  await queries.query('SELECT n FROM openrath_memory.place WHERE n = $1 FOR UPDATE', [place])
}

/** Keeps checked entries. Those whose key is there come back as they stand, and are not in `fresh`. */
export async function writeEntries(
  writing: Writing,
  given: readonly NewMemory[],
): Promise<{ readonly kept: readonly Memory[]; readonly fresh: readonly Memory[] }> {
  await dropEnded(writing)
  const held = await heldKeys(writing, given)
  const fresh: Memory[] = []
  const kept = given.map(one => {
    const { scope = 'agent', key } = one
    const known = key === undefined ? undefined : held.get(nameOf(scope, key))
    if (known) return known
    const entry = newEntry(one, newId(), writing.now)
    if (key !== undefined) held.set(nameOf(scope, key), entry)
    fresh.push(entry)
    return entry
  })
  await insert(writing, fresh)
  return { kept, fresh }
}

/** Replaces what an entry says; what it said before goes on the record. */
export async function updateEntry(writing: Writing, row: EntryRow, change: MemoryChange): Promise<Memory> {
  const { queries, place, now } = writing
  const old = toMemory(row)
  const entry = changedEntry(old, change, now)
  await queries.query('INSERT INTO openrath_memory.revision VALUES ($1, $2, $3, $4)', [
    place,
    old.id,
    old.version,
    JSON.stringify({ ...old, replaced: now }),
  ])
  await remove(writing, [row.n])
  await insert(writing, [entry])
  return entry
}

/** Ends entries, with all the texts they had. */
export async function removeEntries(
  writing: Writing,
  rows: readonly Pick<EntryRow, 'n' | 'id'>[],
): Promise<void> {
  if (rows.length === 0) return
  await remove(
    writing,
    rows.map(row => row.n),
  )
  await writing.queries.query(
    'DELETE FROM openrath_memory.revision WHERE place = $1 AND id = ANY ($2::text[])',
    [writing.place, rows.map(row => row.id)],
  )
}

/** The same because somebody wants it: a later commit of the session they came from leaves them out. */
export async function forgetEntries(
  writing: Writing,
  rows: readonly Pick<EntryRow, 'n' | 'id' | 'scope' | 'key'>[],
): Promise<void> {
  await removeEntries(writing, rows)
  const turns = rows.filter(row => row.key?.startsWith(chunkKey))
  if (turns.length === 0) return
  await writing.queries.query(
    `INSERT INTO openrath_memory.forgotten (place, scope, key)
     SELECT $1, scope, key FROM unnest($2::text[], $3::text[]) AS given (scope, key) ON CONFLICT DO NOTHING`,
    [writing.place, turns.map(row => row.scope), turns.map(row => row.key)],
  )
}

/** Rebuilds the index when an older version of the tokenizer made it; all of it or nothing. */
export async function divideAnew(writing: Writing, tokenizer: number): Promise<void> {
  const { queries, place } = writing
  await lockPlace(writing)
  await queries.query('DELETE FROM openrath_memory.word WHERE place = $1', [place])
  for (let after = '0'; ; ) {
    const rows = await queries.query<{ n: string; body: string }>(
      `SELECT n, body FROM openrath_memory.entry WHERE place = $1 AND n > $2 ORDER BY n LIMIT ${together}`,
      [place, after],
    )
    if (rows.length === 0) break
    const words = rows.map(row => countsOf(row.body))
    await insertWords(
      writing,
      rows.map(row => row.n),
      words,
    )
    await queries.query(
      `UPDATE openrath_memory.entry SET length = given.length
       FROM unnest($1::bigint[], $2::integer[]) AS given (n, length) WHERE entry.n = given.n`,
      [rows.map(row => row.n), words.map(({ length }) => length)],
    )
    after = (rows.at(-1) as { n: string }).n
  }
  await queries.query(
    `UPDATE openrath_memory.place SET tokenizer = $2,
       words = (SELECT coalesce(sum(length), 0) FROM openrath_memory.entry WHERE place = $1) WHERE n = $1`,
    [place, tokenizer],
  )
}

/** Nobody can name what has ended, and it makes room for a new one with its key. */
export async function dropEnded(writing: Writing): Promise<void> {
  const ended = await writing.queries.query<EntryRow>(
    'SELECT n, id FROM openrath_memory.entry WHERE place = $1 AND expires <= $2',
    [writing.place, writing.now],
  )
  await removeEntries(writing, ended)
}

async function heldKeys(
  { queries, place }: Writing,
  given: readonly NewMemory[],
): Promise<Map<string, Memory>> {
  const keyed = given.filter(one => one.key !== undefined)
  if (keyed.length === 0) return new Map()
  const rows = await queries.query<EntryRow>(
    `SELECT ${columns} FROM openrath_memory.entry
     JOIN (SELECT DISTINCT * FROM unnest($2::text[], $3::text[]) AS given (scope, key)) AS given USING (scope, key)
     WHERE place = $1`,
    [place, keyed.map(one => one.scope ?? 'agent'), keyed.map(one => one.key as string)],
  )
  return new Map(rows.map(row => [nameOf(row.scope, row.key as string), toMemory(row)]))
}

function nameOf(scope: string, key: string): string {
  return JSON.stringify([scope, key])
}

/** Inserts entries and their words; the numbers go up in their order. */
async function insert(writing: Writing, entries: readonly Memory[]): Promise<void> {
  for (let from = 0; from < entries.length; from += together) {
    await insertSome(writing, entries.slice(from, from + together))
  }
}

async function insertSome({ queries, place }: Writing, entries: readonly Memory[]): Promise<void> {
  const words = entries.map(entry => countsOf(entry.text))
  const rows = await queries.query<{ n: string; id: string }>(
    `INSERT INTO openrath_memory.entry (place, id, scope, category, lane, series, position, rejected, length, happened, written,
       expires, version, key, labels, tags, metadata, source, body)
     SELECT $1, id, scope, category, lane, series, position, rejected, length, happened, written, expires, version, key,
       ARRAY (SELECT jsonb_array_elements_text(labels::jsonb)), tags, metadata, source, body
     FROM unnest($2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::float8[], $8::text[]::boolean[], $9::integer[],
       $10::float8[], $11::float8[], $12::float8[], $13::integer[], $14::text[], $15::text[], $16::text[], $17::text[],
       $18::text[], $19::text[]) WITH ORDINALITY AS given (id, scope, category, lane, series, position, rejected, length, happened,
       written, expires, version, key, labels, tags, metadata, source, body, place_in_order)
     ORDER BY place_in_order RETURNING n, id`,
    [
      place,
      entries.map(entry => entry.id),
      entries.map(entry => entry.scope),
      entries.map(entry => entry.category),
      entries.map(entry => entry.lane ?? ''),
      entries.map(entry => entry.source.series ?? null),
      entries.map(entry => entry.source.index ?? 0),
      entries.map(entry => String(entry.standing === 'rejected')),
      words.map(({ length }) => length),
      entries.map(entry => entry.at),
      entries.map(entry => entry.written),
      entries.map(entry => entry.expires ?? null),
      entries.map(entry => entry.version),
      entries.map(entry => entry.key ?? null),
      entries.map(entry => JSON.stringify(labelsOf(entry.tags, entry.metadata))),
      entries.map(entry => JSON.stringify(entry.tags)),
      entries.map(entry => JSON.stringify(entry.metadata)),
      entries.map(entry => JSON.stringify(entry.source)),
      entries.map(entry => entry.text),
    ],
  )
  const numbers = new Map(rows.map(row => [row.id, row.n]))
  await insertWords(
    { queries, place },
    entries.map(entry => numbers.get(entry.id) as string),
    words,
  )
  await count(
    { queries, place },
    entries.length,
    words.reduce((sum, { length }) => sum + length, 0),
  )
}

async function insertWords(
  { queries, place }: Omit<Writing, 'now'>,
  numbers: readonly string[],
  words: readonly Counted[],
): Promise<void> {
  const rows = words.flatMap(({ counts, length }, i) =>
    [...counts].map(([word, count]) => ({ n: numbers[i] as string, word, count, length })),
  )
  await queries.query(
    `INSERT INTO openrath_memory.word (place, word, entry, count, length)
     SELECT $1, * FROM unnest($2::text[], $3::bigint[], $4::integer[], $5::integer[])`,
    [
      place,
      rows.map(row => row.word),
      rows.map(row => row.n),
      rows.map(row => row.count),
      rows.map(row => row.length),
    ],
  )
}

async function remove({ queries, place }: Writing, numbers: readonly string[]): Promise<void> {
  await queries.query('DELETE FROM openrath_memory.word WHERE entry = ANY ($1::bigint[])', [numbers])
  const gone = await queries.query<{ length: number }>(
    'DELETE FROM openrath_memory.entry WHERE n = ANY ($1::bigint[]) RETURNING length',
    [numbers],
  )
  await count({ queries, place }, -gone.length, -gone.reduce((sum, { length }) => sum + length, 0))
}

/** Keeps what a ranking needs to know of all entries, so that it need not count them. */
async function count(
  { queries, place }: Omit<Writing, 'now'>,
  entries: number,
  words: number,
): Promise<void> {
  await queries.query(
    'UPDATE openrath_memory.place SET entries = entries + $2, words = words + $3 WHERE n = $1',
    [place, entries, words],
  )
}

interface Counted {
  readonly counts: ReadonlyMap<string, number>
  readonly length: number
}

function countsOf(text: string): Counted {
  const { terms } = wordsOf(text)
  const counts = new Map<string, number>()
  for (const term of terms) counts.set(term, (counts.get(term) ?? 0) + 1)
  return { counts, length: terms.length }
}
