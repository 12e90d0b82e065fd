import { type CommitPlan, isRejectedLane } from '../../commit-plan.ts'
import type { ReadResource } from '../../resource.ts'
import type { Committed, Memory, NewMemory } from '../../spec.ts'
import { chunkKey } from '../../turns.ts'
import { columns, type EntryRow } from './rows.ts'
import { removeEntries, type Writing, writeEntries } from './write.ts'

export async function commitPlan(writing: Writing, plan: CommitPlan): Promise<Committed> {
  const { fresh } = await writeEntries(writing, await notForgotten(writing, plan.entries))
  // What is rejected does not wait any more, so it is not settled as adopted.
  await reject(writing, plan)
  const settled = await settle(writing, plan)
  const from = new Set(fresh.flatMap(entry => entry.source.chunks ?? []))
  return { written: fresh, from: [...from], settled }
}

async function notForgotten(
  { queries, place }: Writing,
  entries: readonly NewMemory[],
): Promise<readonly NewMemory[]> {
  const rows = await queries.query<{ scope: string; key: string }>(
    'SELECT scope, key FROM openrath_memory.forgotten WHERE place = $1 AND key = ANY ($2::text[])',
    [place, entries.map(({ key = '' }) => key)],
  )
  const forgotten = new Set(rows.map(({ scope, key }) => JSON.stringify([scope, key])))
  return entries.filter(({ scope, key }) => !forgotten.has(JSON.stringify([scope, key])))
}

async function settle({ queries, place }: Writing, { lane, adopted }: CommitPlan): Promise<number> {
  const rows = await queries.query(
    `UPDATE openrath_memory.entry SET lane = '' WHERE place = $1 AND lane <> '' AND (lane = $2 OR id = ANY ($3::text[]))
     RETURNING n`,
    [place, lane, adopted],
  )
  return rows.length
}

/** Marks what came from rejected chunks, sessions or lanes. It is on the record now, so everyone may find it, as what it is. */
async function reject(
  { queries, place }: Writing,
  { rejected, rejections: { chunks, subjects } }: CommitPlan,
): Promise<void> {
  if (subjects.size === 0) return
  const rows = await queries.query<{ lane: string }>(
    "SELECT DISTINCT lane FROM openrath_memory.entry WHERE place = $1 AND lane <> ''",
    [place],
  )
  const lanes = rows.map(row => row.lane).filter(lane => isRejectedLane(lane, subjects))
  const made = [...chunks, ...subjects]
  await queries.query(
    `UPDATE openrath_memory.entry SET rejected = true, lane = '' WHERE place = $1 AND
       (lane = ANY ($2::text[]) AND lane <> ''
        OR id = ANY ($4::text[])
        OR lane <> '' AND source::jsonb ->> 'session' = ANY ($5::text[])
        OR split_part(substr(key, ${chunkKey.length + 1}), '/', 1) = ANY ($3::text[]) AND starts_with(key, '${chunkKey}')
        OR source::jsonb -> 'chunks' ?| $3::text[])`,
    [place, lanes, made, rejected, [...subjects]],
  )
}

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
