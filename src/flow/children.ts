import { isPlainObject } from '../base/json.ts'

/**
 * The parts that an object holds, by their path: in its fields, and in the arrays, maps, sets and plain objects of those, however
 * deep. Getters are not run, private fields cannot be seen, and nothing else (sessions, models, other people's classes) is entered.
 */
export function childrenIn<T extends object>(
  holder: object,
  isChild: (value: unknown) => value is T,
): Map<string, T> {
  const found = new Map<string, T>()
  const around = new Set<unknown>()

  const look = (value: unknown, path: string): void => {
    if (isChild(value)) {
      found.set(path, value)
      return
    }
    // A container that holds itself holds nothing new the second time.
    if (typeof value !== 'object' || value === null || isModel(value) || around.has(value)) return
    around.add(value)
    for (const [name, member] of membersOf(value)) look(member, `${path}.${name}`)
    around.delete(value)
  }

  for (const [name, value] of fieldsOf(holder)) look(value, name)
  return found
}

/** What a plain container holds; nothing of anything else. */
function membersOf(value: object): Iterable<readonly [unknown, unknown]> {
  if (Array.isArray(value)) return value.entries()
  if (value instanceof Map) return value.entries()
  if (value instanceof Set) return [...value].entries()
  return isPlainObject(value) ? fieldsOf(value) : []
}

function* fieldsOf(holder: object): Generator<readonly [string, unknown]> {
  for (const name of Object.keys(holder)) {
    const field = Object.getOwnPropertyDescriptor(holder, name)
    if (field && 'value' in field) yield [name, field.value]
  }
}

/** A model may be a plain object too, and what it holds is its own business. */
function isModel(value: object): boolean {
  return 'answer' in value && typeof value.answer === 'function'
}
