import { show } from '../base/errors.ts'
import {
  copyJson,
  inOrder,
  isPlainObject,
  itemPath,
  type Json,
  type JsonObject,
  memberPath,
  type Problem,
} from '../base/json.ts'
import { lastMoment } from '../base/time.ts'

/**
 * Turns an unknown value into its normal, frozen form, or says what is wrong with it. A check adds to `problems`
 * and goes on, so that a caller hears everything at once; what it returns then is never used.
 */
export type Check<T> = (value: unknown, path: string, problems: Problem[]) => T

/** A record's fields by name. A required field is named in `required`; any other field is refused. */
export interface Fields {
  readonly checks: { readonly [name: string]: Check<unknown> }
  readonly required: readonly string[]
  /** The same in canonical order, in which fields are written. */
  readonly ordered: readonly Field[]
}

interface Field {
  readonly name: string
  readonly check: Check<unknown>
  readonly isRequired: boolean
}

export function fields(checks: Fields['checks'], required: readonly string[]): Fields {
  const ordered = inOrder(Object.keys(checks)).map(name => {
    return { name, check: checks[name] as Check<unknown>, isRequired: required.includes(name) }
  })
  return { checks, required, ordered }
}

/** Copies the known fields of `value` onto `target`; `at` fills in for a time that is left out. */
export function checkFields(
  value: Record<string, unknown>,
  { checks, ordered }: Fields,
  path: string,
  problems: Problem[],
  target: Record<string, unknown>,
  at?: number,
): void {
  let known = 0
  for (const { name, check, isRequired } of ordered) {
    const field = value[name]
    if (field !== undefined) {
      known++
      target[name] = check(field, memberPath(path, name), problems)
    } else if (isRequired) problems.push({ path: memberPath(path, name), message: 'is missing' })
    else if (name === 'at' && at !== undefined) target.at = at
  }
  if (known < Object.keys(value).length) refuseUnknown(value, checks, path, problems)
}

function refuseUnknown(
  value: Record<string, unknown>,
  checks: Fields['checks'],
  path: string,
  problems: Problem[],
): void {
  for (const name of Object.keys(value)) {
    if (value[name] === undefined || Object.hasOwn(checks, name)) continue
    problems.push({ path: memberPath(path, name), message: unknownField(name, checks) })
  }
}

const setBySession: ReadonlySet<string> = new Set(['id', 'state', 'index', 'branch', 'origin'])

function unknownField(name: string, checks: Fields['checks']): string {
  if (setBySession.has(name)) return 'is set by the session; leave it out'
  const place = 'extras' in checks ? '; put data of your own under extras' : ''
  return `is not a field here (known: ${Object.keys(checks).join(', ')})${place}`
}

export function record<T>(checked: Fields): Check<T> {
  return (value, path, problems) => {
    const target: Record<string, unknown> = {}
    if (isPlainObject(value)) checkFields(value, checked, path, problems, target)
    else problems.push({ path, message: `must be an object, not ${show(value)}` })
    return Object.freeze(target) as T
  }
}

export function list<T>(check: Check<T>): Check<readonly T[]> {
  return (value, path, problems) => {
    if (!Array.isArray(value)) {
      problems.push({ path, message: `must be an array, not ${show(value)}` })
      return []
    }
    // Made at its full length: a list that grows by push keeps room that a frozen one never needs.
    const copy = new Array<T>(value.length)
    for (let i = 0; i < value.length; i++) copy[i] = check(value[i], itemPath(path, i), problems)
    return Object.freeze(copy)
  }
}

export function oneOf<T extends string>(...allowed: readonly T[]): Check<T> {
  return (value, path, problems) => {
    if (!allowed.includes(value as T)) {
      problems.push({ path, message: `must be one of ${allowed.join(', ')}, not ${show(value)}` })
    }
    return value as T
  }
}

/** A union told apart by one string field. */
export function tagged<T>(tag: string, cases: { readonly [name: string]: Fields }): Check<T> {
  const records: { [name: string]: Check<T> } = {}
  for (const name of Object.keys(cases)) records[name] = record<T>(cases[name] as Fields)
  return (value, path, problems) => {
    const name = isPlainObject(value) ? value[tag] : undefined
    if (typeof name === 'string' && Object.hasOwn(records, name)) {
      return (records[name] as Check<T>)(value, path, problems)
    }
    const seen = isPlainObject(value) ? `${tag} ${show(name)}` : show(value)
    problems.push({
      path,
      message: `must be an object whose ${tag} is ${Object.keys(cases).join(', ')}, not ${seen}`,
    })
    return value as T
  }
}

export const text: Check<string> = (value, path, problems) => {
  if (typeof value !== 'string') problems.push({ path, message: `must be a string, not ${show(value)}` })
  return value as string
}

export const nonEmpty: Check<string> = (value, path, problems) => {
  if (typeof value !== 'string' || value === '') {
    problems.push({ path, message: `must be a non-empty string, not ${show(value)}` })
  }
  return value as string
}

export const number: Check<number> = (value, path, problems) => {
  if (typeof value !== 'number' || !Number.isFinite(value)) {
    problems.push({ path, message: `must be a finite number, not ${show(value)}` })
  }
  return value === 0 ? 0 : (value as number)
}

/** Milliseconds since the epoch, as far as a date can name them. */
export const time: Check<number> = (value, path, problems) => {
  if (Math.abs(value as number) > lastMoment && Number.isFinite(value))
    problems.push({
      path,
      message: `must be a time in milliseconds that a date can name, not ${show(value)}`,
    })
  return number(value, path, problems)
}

export const count: Check<number> = (value, path, problems) => {
  if (typeof value !== 'number' || !Number.isFinite(value) || value < 0) {
    problems.push({ path, message: `must be a number of at least 0, not ${show(value)}` })
  }
  return value === 0 ? 0 : (value as number)
}

export const json: Check<Json> = (value, path, problems) => copyJson(value, path, problems)

export const jsonObject: Check<JsonObject> = (value, path, problems) => {
  if (!isPlainObject(value)) problems.push({ path, message: `must be an object, not ${show(value)}` })
  return copyJson(value, path, problems) as JsonObject
}

/** The last digest that was one: an agent's answers all name the same prompt. */
let lastDigest = ''

export const digest: Check<string> = (value, path, problems) => {
  if (value === lastDigest && lastDigest !== '') return value
  if (typeof value === 'string' && /^[0-9a-f]{64}$/.test(value)) lastDigest = value
  else problems.push({ path, message: `must be a sha256 in lower-case hex, not ${show(value)}` })
  return value as string
}

export function nullable<T>(check: Check<T>): Check<T | null> {
  return (value, path, problems) => (value === null ? null : check(value, path, problems))
}
