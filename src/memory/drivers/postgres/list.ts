import { RathError, show } from '../../../base/errors.ts'
import { checkListLimit } from '../../check.ts'
import type { MemoryFilter, MemoryPage } from '../../spec.ts'
import { matching } from './filter.ts'
import type { Finding } from './find.ts'
import { columns, type EntryRow, toMemory } from './rows.ts'

/** The newest first. */
export async function listEntries(
  { queries, place, now }: Finding,
  { limit = 50, cursor, ...filter }: MemoryFilter & { limit?: number; cursor?: string },
): Promise<MemoryPage> {
  checkListLimit(limit)
  const where = matching(place, filter, now)
  if (cursor !== undefined) {
    const [at, n] = parseCursor(cursor)
    where.add(`(happened, n) < ($::float8, ${n}::bigint)`, at)
  }
  const rows = await queries.query<EntryRow>(
    `SELECT ${columns} FROM openrath_memory.entry WHERE ${where} ORDER BY happened DESC, n DESC LIMIT ${limit + 1}`,
    where.values,
  )
  const page = rows.slice(0, limit)
  const last = page.at(-1)
  const entries = page.map(toMemory)
  return rows.length > limit && last ? { entries, cursor: `${last.happened}:${last.n}` } : { entries }
}

function parseCursor(cursor: unknown): [number, string] {
  const [, at, n] = (typeof cursor === 'string' && /^(-?\d[\d.e+]*):(\d{1,18})$/.exec(cursor)) || []
  if (at !== undefined && n !== undefined) return [Number(at), n]
  throw new RathError(
    'invalid-argument',
    `${show(cursor)} is no cursor of a list; take it from the page before.`,
  )
}
