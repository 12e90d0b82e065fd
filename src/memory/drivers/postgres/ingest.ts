import type { ReadResource } from '../../resource.ts'
import type { Memory, NewMemory } from '../../spec.ts'
import { columns, type EntryRow } from './rows.ts'
import { removeEntries, type Writing, writeEntries } from './write.ts'

/** Keeps a resource instead of what was kept under its name. Pieces that did not change stay the entries they were. */
export async function replaceResource(
  writing: Writing,
  { name, scope }: ReadResource,
  entries: readonly NewMemory[],
): Promise<readonly Memory[]> {
  const same = new Map(entries.map(entry => [entry.key, entry.text]))
  const before = await writing.queries.query<EntryRow>(
    `SELECT ${columns} FROM openrath_memory.entry WHERE place = $1 AND scope = $2 AND starts_with(key, $3 || '#')`,
    [writing.place, scope, name],
  )
  // The numbers behind the name only: another resource's name may begin with this one.
  const pieces = before.filter(row => /^\d+$/.test((row.key as string).slice(name.length + 1)))
  await removeEntries(
    writing,
    pieces.filter(row => same.get(row.key as string) !== row.body),
  )
  return (await writeEntries(writing, entries)).kept
}
