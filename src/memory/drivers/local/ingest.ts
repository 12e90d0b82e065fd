import type { ReadResource } from '../../resource.ts'
import type { Memory, NewMemory } from '../../spec.ts'
import type { Row } from './database.ts'
import { removeEntry, type Writing, writeEntries } from './write.ts'

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
