import { type CommitPlan, isRejectedLane } from '../../commit-plan.ts'
import type { ReadResource } from '../../resource.ts'
import type { Committed, Memory, NewMemory } from '../../spec.ts'
import { chunkKey } from '../../turns.ts'
import type { Row } from './database.ts'
import { relabel, removeEntry, type Writing, writeEntries } from './write.ts'

export function commitPlan(writing: Writing, plan: CommitPlan): Committed {
  const { fresh } = writeEntries(writing, notForgotten(writing, plan.entries))
  // What is rejected does not wait any more, so it is not settled as adopted.
  reject(writing, plan)
  const settled = settle(writing, plan)
  const from = new Set(fresh.flatMap(entry => entry.source.chunks ?? []))
  return { written: fresh, from: [...from], settled }
}

function notForgotten({ db, names }: Writing, entries: readonly NewMemory[]): readonly NewMemory[] {
  if (!db.get('SELECT 1 FROM forgotten LIMIT 1')) return entries
  return entries.filter(({ key = '', scope = '' }) => {
    const number = names.find('scope', scope)
    return !db.get('SELECT 1 FROM forgotten WHERE key = ? AND scope = ?', key, number)
  })
}

function settle({ db, names }: Writing, { lane, adopted }: CommitPlan): number {
  const waiting = new Set<number>()
  const number = names.find('lane', lane)
  if (number !== 0) {
    for (const row of db.all('SELECT n FROM entry WHERE lane = ? AND lane <> 0', number))
      waiting.add(row.n as number)
  }
  for (const id of adopted) {
    const row = db.get('SELECT n FROM entry WHERE id = ? AND lane <> 0', id)
    if (row) waiting.add(row.n as number)
  }
  for (const n of waiting) relabel(db, n, { lane: 0 })
  return waiting.size
}

/** Marks what came from rejected chunks, sessions or lanes. It is on the record now, so everyone may find it, as what it is. */
function reject({ db, names }: Writing, { rejected, rejections: { chunks, subjects } }: CommitPlan): void {
  if (subjects.size === 0) return
  const found = new Set<number>()
  const collect = (sql: string, ...values: string[]) => {
    for (const row of db.all(sql, ...values)) if (!row.rejected) found.add(row.n as number)
  }
  for (const chunk of [...chunks, ...subjects]) {
    // A turn has its chunk in its key, alone or followed by the number of a piece.
    const key = chunkKey + chunk
    collect("SELECT n, rejected FROM entry WHERE key = ?1 OR (key > ?1 || '/' AND key < ?1 || '0')", key)
    collect('SELECT n, rejected FROM entry WHERE id IN (SELECT id FROM origin WHERE chunk = ?)', chunk)
  }
  for (const id of rejected) collect('SELECT n, rejected FROM entry WHERE id = ?', id)
  for (const subject of subjects) {
    collect(
      "SELECT n, rejected FROM entry WHERE lane <> 0 AND json_extract(source, '$.session') = ?",
      subject,
    )
  }
  for (const row of db.all('SELECT DISTINCT lane FROM entry WHERE lane <> 0')) {
    if (!isRejectedLane(names.text(row.lane as number), subjects)) continue
    for (const { n } of db.all('SELECT n FROM entry WHERE lane = ? AND lane <> 0', row.lane as number))
      found.add(n as number)
  }
  for (const n of found) relabel(db, n, { lane: 0, rejected: 1 })
}

/** Keeps a resource instead of what was kept under its name. Pieces that did not change stay the entries they were. */
export function replaceResource(
  writing: Writing,
  { name, scope }: ReadResource,
  entries: readonly NewMemory[],
): readonly Memory[] {
  const { db, names } = writing
  const same = new Map(entries.map(entry => [entry.key, entry.text]))
  const before = db.all(
    "SELECT * FROM entry WHERE key > ?1 || '#' AND key < ?1 || '$' AND scope = ?2",
    name,
    names.find('scope', scope),
  )
  for (const row of before as (Row & { key: string })[]) {
    // The numbers behind the name only: another resource's name may begin with this one.
    if (!/^\d+$/.test(row.key.slice(name.length + 1))) continue
    if (same.get(row.key) !== row.text) removeEntry(db, row)
  }
  return writeEntries(writing, entries).kept
}
