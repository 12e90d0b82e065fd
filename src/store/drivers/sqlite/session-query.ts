import type { Place } from '../../driver.ts'
import type { SessionFilter } from '../../spec.ts'

/** The WHERE clause of a filter, with its values in order. */
export function sessionQuery(
  filter: SessionFilter,
  before: Place | undefined,
): { where: string; values: (string | number)[] } {
  const conditions: string[] = []
  const values: (string | number)[] = []
  const add = (condition: string, ...given: (string | number)[]) => {
    conditions.push(condition)
    values.push(...given)
  }
  if (filter.operation !== undefined)
    add("json_extract(session.lineage, '$.operation') = ?", filter.operation)
  if (filter.by !== undefined) add("json_extract(session.lineage, '$.by') = ?", filter.by)
  if (filter.label !== undefined) add("json_extract(session.lineage, '$.label') = ?", filter.label)
  if (filter.parent !== undefined)
    add('session.n IN (SELECT child FROM parent WHERE parent = ?)', filter.parent)
  if (filter.tagged !== undefined) {
    add(`${filter.tagged ? '' : 'NOT '}EXISTS (SELECT 1 FROM tag WHERE tag.session = session.n)`)
  }
  if (filter.since !== undefined) add('session.created >= ?', filter.since)
  if (filter.until !== undefined) add('session.created < ?', filter.until)
  if (before !== undefined) add('(session.created, session.id) < (?, ?)', before.created, before.id)
  return { where: conditions.length > 0 ? `WHERE ${conditions.join(' AND ')}` : '', values }
}
