import type { SessionPosition } from '../../driver.ts'
import type { SessionFilter } from '../../spec.ts'
import type { Value } from './connection.ts'
import { toText } from './text.ts'

/** The WHERE clause of a filter, with its values in order. */
export function sessionQuery(
  filter: SessionFilter,
  before: SessionPosition | undefined,
): { where: string; values: Value[] } {
  const conditions: string[] = []
  const values: Value[] = []
  const place = (value: Value) => `$${values.push(value)}`
  const add = (condition: string) => conditions.push(condition)
  if (filter.operation !== undefined) add(`session.operation = ${place(toText(filter.operation))}`)
  if (filter.by !== undefined) add(`session.made_by = ${place(toText(filter.by))}`)
  if (filter.label !== undefined) add(`session.label = ${place(toText(filter.label))}`)
  if (filter.parent !== undefined) {
    add(`session.n IN (SELECT child FROM openrath.parent WHERE parent = ${place(toText(filter.parent))})`)
  }
  if (filter.tagged !== undefined) {
    add(`${filter.tagged ? '' : 'NOT '}EXISTS (SELECT FROM openrath.tag WHERE tag.session = session.n)`)
  }
  if (filter.since !== undefined) add(`session.created >= ${place(whole(filter.since))}`)
  if (filter.until !== undefined) add(`session.created < ${place(whole(filter.until))}`)
  if (before !== undefined) {
    add(`(session.created, session.id) < (${place(whole(before.created))}, ${place(toText(before.id))})`)
  }
  return { where: conditions.length > 0 ? `WHERE ${conditions.join(' AND ')}` : '', values }
}

/** The least whole number that is not below; a column of whole numbers compares with it as with the number itself. */
function whole(value: number): number {
  const most = Number.MAX_SAFE_INTEGER
  return Math.max(-most, Math.min(Math.ceil(value), most))
}
