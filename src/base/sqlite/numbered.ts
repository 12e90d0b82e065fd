import type { DatabaseSync, StatementSync } from 'node:sqlite'

/**
 * A statement that takes its values in order, also where it numbers them (`?1`). Node 22 takes such a number for a name: it is given the
 * values by name there.
 */
export function prepareNumbered(db: DatabaseSync, text: string): StatementSync {
  const statement = db.prepare(text)
  if (!/\?\d/.test(text) || takesNumbers(db)) return statement
  for (const method of ['run', 'get', 'all', 'iterate'] as const) {
    const given = statement[method].bind(statement) as (values: object) => unknown
    const inOrder = (...values: unknown[]) =>
      given(Object.fromEntries(values.map((value, i) => [`?${i + 1}`, value])))
    Object.defineProperty(statement, method, { value: inOrder })
  }
  return statement
}

let isTaken: boolean | undefined

function takesNumbers(db: DatabaseSync): boolean {
  if (isTaken === undefined) {
    try {
      isTaken = db.prepare('SELECT ?1').get(1) !== undefined
    } catch {
      isTaken = false
    }
  }
  return isTaken
}
