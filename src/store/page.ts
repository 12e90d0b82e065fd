import { RathError, show } from '../base/errors.ts'
import { type Problem, refuse } from '../base/json.ts'
import type { SessionPosition, StoreDriver } from './driver.ts'
import type { SessionFilter, SessionPage } from './spec.ts'

export async function listPage(driver: StoreDriver, filter: SessionFilter): Promise<SessionPage> {
  checkFilter(filter)
  const limit = checkLimit(filter.limit, 50)
  const before = filter.cursor === undefined ? undefined : readCursor(filter.cursor)
  const rows = await driver.sessionRows(filter, limit + 1, before)
  if (rows.length <= limit) return { rows }
  const page = rows.slice(0, limit)
  const { created, id } = page.at(-1) as SessionPosition
  return { rows: page, cursor: Buffer.from(JSON.stringify([created, id])).toString('base64url') }
}

export function checkLimit(limit: number | undefined, usual: number): number {
  if (limit === undefined) return usual
  if (Number.isSafeInteger(limit) && limit >= 1 && limit <= 1000) return limit
  throw new RathError('invalid-argument', `limit must be a whole number from 1 to 1000, not ${show(limit)}.`)
}

const filterTypes: Readonly<Record<string, string>> = {
  operation: 'string',
  by: 'string',
  label: 'string',
  parent: 'string',
  tagged: 'boolean',
  since: 'number',
  until: 'number',
}

/** Everything that is wrong with a filter, at once. */
function checkFilter(filter: SessionFilter): void {
  const problems: Problem[] = []
  for (const [name, value] of Object.entries(filter)) {
    const type = filterTypes[name]
    if (value === undefined || name === 'limit' || name === 'cursor') continue
    if (type === undefined) {
      const known = [...Object.keys(filterTypes), 'limit', 'cursor'].join(', ')
      problems.push({ path: name, message: `is not a filter (known: ${known})` })
    } else if (typeof value !== type || Number.isNaN(value))
      problems.push({ path: name, message: `must be a ${type}, not ${show(value)}` })
  }
  refuse('invalid-argument', 'list was given a filter that it does not understand', problems)
}

function readCursor(cursor: string): SessionPosition {
  try {
    const [created, id] = JSON.parse(Buffer.from(cursor, 'base64url').toString())
    if (typeof created === 'number' && typeof id === 'string') return { created, id }
  } catch (cause) {
    throw badCursor(cursor, cause)
  }
  throw badCursor(cursor)
}

function badCursor(cursor: unknown, cause?: unknown): RathError {
  return new RathError('invalid-argument', `${show(cursor)} is not a cursor that list() returned.`, { cause })
}
