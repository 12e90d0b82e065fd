import { configure } from 'safe-stable-stringify'
import { type ErrorCode, RathError, show } from './errors.ts'
import type { Json } from './json-type.ts'

export type { Json, JsonObject } from './json-type.ts'

/** What is wrong with a value, and where in it. */
export interface Problem {
  readonly path: string
  readonly message: string
}

/** Deeper nesting is refused: no tool needs it, and every recursive reader is safe below it. */
const maximumDepth = 256

/** Past this many problems a copy looks no further, so that data which holds itself twice ends too. */
const enoughProblems = 100

/**
 * RFC 8785 canonical JSON of plain data. One extension: a lone surrogate, which the RFC has no form for, is written as its lower-case
 * `\udxxx` escape, so that any string has a digest.
 */
export function canonicalJson(value: unknown): string {
  // A look at the keys is several times faster than sorting them.
  return isPlain(value, 0, true) ? JSON.stringify(value) : sortedJson(value)
}

const sortedJson = configure({ deterministic: true, strict: true }) as (value: unknown) => string

/** Keys such as "10", which JavaScript puts first, in numeric order, whatever order they were written in. */
const integerKey = /"(?:0|[1-9]\d*)":/
/** Whether any copy ever met one. They are rare, and looking for them in every text costs more than writing it. */
let metIntegerKey = false

/**
 * The same, several times faster, for data whose keys were written in order: what `copyJson` and the checks of a chunk make.
 */
export function canonicalJsonOfOrdered(value: unknown): string {
  const text = JSON.stringify(value)
  return metIntegerKey && integerKey.test(text) ? sortedJson(value) : text
}

/**
 * A deep, frozen copy of plain JSON data, its keys in canonical order. Anything JSON cannot hold is added to `problems` by its
 * path; with an empty `path` none are built, which is faster where problems are rare and a second look can name them.
 */
export function copyJson(value: unknown, path: string, problems: Problem[], depth = 0): Json {
  switch (typeof value) {
    case 'string':
    case 'boolean':
      return value
    case 'number':
      if (Number.isFinite(value)) return value === 0 ? 0 : value
      problems.push({ path, message: `${value} is not a JSON number; use null or a string` })
      return null
    case 'object':
      if (value === null) return null
      if (problems.length >= enoughProblems) return null
      if (depth >= maximumDepth) {
        problems.push({
          path,
          message: `nested deeper than ${maximumDepth} levels, or holds itself; flatten it or store it as text`,
        })
        return null
      }
      if (Array.isArray(value)) return copyArray(value, path, problems, depth)
      if (isPlainObject(value)) return copyObject(value, path, problems, depth)
  }
  problems.push({ path, message: `${show(value)} is not JSON; convert it to plain data first` })
  return null
}

/**
 * Data that is JSON by its type, where TypeScript cannot see it: an interface has no index signature. Nothing is checked or copied; what comes
 * from outside goes through `toJson`.
 */
export function asJson(value: object): Json {
  return value as Json
}

/** Whether `copyJson` would find nothing wrong and leave nothing out: for who needs no copy. */
export function isJson(value: unknown, depth = 0): value is Json {
  return isPlain(value, depth, false)
}

/** `ordered` when JavaScript has to write its keys in canonical order by itself, too. */
function isPlain(value: unknown, depth: number, ordered: boolean): boolean {
  if (typeof value === 'string' || typeof value === 'boolean' || value === null) return true
  if (typeof value === 'number') return Number.isFinite(value)
  if (typeof value !== 'object' || depth >= maximumDepth) return false
  if (Array.isArray(value)) {
    for (let i = 0; i < value.length; i++) if (!isPlain(value[i], depth + 1, ordered)) return false
    return true
  }
  if (!isPlainObject(value)) return false
  let last = ''
  // Makes no array of keys, as Object.keys does.
  for (const key in value) {
    if (!Object.hasOwn(value, key)) continue
    if (ordered && (key < last || isDigit(key.charCodeAt(0)))) return false
    if (!isPlain(value[key], depth + 1, ordered)) return false
    last = key
  }
  return true
}

function copyArray(value: readonly unknown[], path: string, problems: Problem[], depth: number): Json {
  const copy = new Array<Json>(value.length)
  for (let i = 0; i < value.length; i++) copy[i] = copyJson(value[i], itemPath(path, i), problems, depth + 1)
  return Object.freeze(copy)
}

function copyObject(value: object, path: string, problems: Problem[], depth: number): Json {
  const copy: Record<string, Json> = {}
  for (const key of inOrder(Object.keys(value))) {
    const member = (value as Record<string, unknown>)[key]
    if (member === undefined) continue
    const copied = copyJson(member, memberPath(path, key), problems, depth + 1)
    if (!metIntegerKey && isDigit(key.charCodeAt(0))) metIntegerKey = true
    if (key === '__proto__') Object.defineProperty(copy, key, { value: copied, enumerable: true })
    else copy[key] = copied
  }
  return Object.freeze(copy)
}

function isDigit(code: number): boolean {
  return code >= 0x30 && code <= 0x39
}

/** Sorts keys by UTF-16 code unit, as RFC 8785 does; most come sorted. */
export function inOrder(keys: string[]): string[] {
  for (let i = 1; i < keys.length; i++) if ((keys[i - 1] as string) > (keys[i] as string)) return keys.sort()
  return keys
}

export function memberPath(path: string, key: string): string {
  return path === '' ? '' : `${path}.${key}`
}

export function itemPath(path: string, index: number): string {
  return path === '' ? '' : `${path}[${index}]`
}

/** Freezes data that nobody else holds, such as what `JSON.parse` returned, all the way down. */
export function freezeJson<T>(value: T): T {
  if (typeof value === 'object' && value !== null)
    for (const member of Object.values(value)) freezeJson(member)
  return Object.freeze(value)
}

/** True for `{}` literals, `JSON.parse` results and null-prototype records; false for class instances. */
export function isPlainObject(value: unknown): value is Record<string, unknown> {
  if (typeof value !== 'object' || value === null) return false
  const prototype = Object.getPrototypeOf(value)
  return prototype === null || Object.getPrototypeOf(prototype) === null
}

/** A frozen copy of `value`, or an error that lists everything in it that is not JSON. */
export function toJson(value: unknown, name: string): Json {
  const problems: Problem[] = []
  const copy = copyJson(value, name, problems)
  refuse('invalid-json', `${name} must be plain JSON data`, problems)
  return copy
}

/** Throws one error naming every problem; returns when there is none. */
export function refuse(code: ErrorCode, what: string, problems: readonly Problem[]): void {
  if (problems.length === 0) return
  const lines = problems.slice(0, 20).map(problem => `  ${problem.path}: ${problem.message}`)
  if (problems.length > 20) lines.push(`  … and ${problems.length - 20} more`)
  throw new RathError(code, `${what}:\n${lines.join('\n')}`, {
    data: { paths: problems.slice(0, 20).map(problem => problem.path) },
  })
}
