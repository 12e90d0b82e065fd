import { RathError, show } from '../base/errors.ts'
import { copyJson, isPlainObject, type JsonObject, type Problem, refuse } from '../base/json.ts'
import { lastMoment } from '../base/time.ts'
import type { FindOptions, MemoryChange, MemoryFilter, MemorySource, NewMemory } from './spec.ts'

/** The longest text of one entry, in UTF-16 units. An entry is something to read at once; `ingest` divides what is longer. */
const longestText = 1_000_000
/** The longest scope, category, tag, key or other name. */
const longestName = 1_024

/** Entries as they will be kept: every problem of every entry is reported at once. */
export function checkEntries(entries: unknown): NewMemory[] {
  if (!Array.isArray(entries)) {
    throw new RathError('invalid-argument', `write takes an array of entries, not ${show(entries)}.`)
  }
  const problems: Problem[] = []
  const checked = entries.map((entry, i) => checkEntry(entry, `entries[${i}]`, problems))
  refuse('invalid-argument', 'These memories cannot be kept', problems)
  return checked
}

export function checkChange(change: unknown): MemoryChange {
  const problems: Problem[] = []
  const checked = checkFields(change, 'change', changeChecks, problems) as MemoryChange
  refuse('invalid-argument', 'This memory cannot be changed so', problems)
  return checked
}

export function checkFilter<F extends MemoryFilter>(filter: F, what: string): F {
  const problems: Problem[] = []
  const checked = checkFields(filter, what, filterChecks, problems) as unknown as F
  refuse('invalid-argument', `This is no filter for ${what}`, problems)
  return checked
}

/** The same for what is to end, which is never everything. */
export function checkForget(filter: MemoryFilter, name: string): MemoryFilter {
  const problems: Problem[] = []
  const checked = checkFields(filter, 'forget', narrowing, problems) as MemoryFilter
  refuse('invalid-argument', 'This does not say what to forget', problems)
  const { tags = [], metadata = {}, ...rest } = checked
  if (tags.length > 0 || Object.keys({ ...metadata, ...rest }).length > 0) return checked
  throw new RathError(
    'invalid-argument',
    `forget was given a filter of nothing, which would end every memory of ${name}. Say which: { scope: 'user/ada' }.`,
  )
}

export function checkListLimit(limit: unknown): void {
  if (Number.isInteger(limit) && (limit as number) >= 1 && (limit as number) <= 1_000) return
  throw new RathError('invalid-argument', `limit is a whole number from 1 to 1,000, not ${show(limit)}.`)
}

export function checkQuery(query: unknown, options: FindOptions): { query: string; limit: number } {
  if (typeof query !== 'string') {
    throw new RathError('invalid-argument', `find takes a text to look for, not ${show(query)}.`)
  }
  const { limit = 5, floor = 0, mode = 'auto' } = options
  if (!Number.isInteger(limit) || limit < 1 || limit > 100) {
    throw new RathError('invalid-argument', `limit is a whole number from 1 to 100, not ${show(limit)}.`)
  }
  if (typeof floor !== 'number' || !(floor >= 0 && floor <= 1)) {
    throw new RathError('invalid-argument', `floor is a number from 0 to 1, not ${show(floor)}.`)
  }
  if (mode !== 'auto' && mode !== 'words' && mode !== 'vectors') {
    throw new RathError('invalid-argument', `mode is 'auto', 'words' or 'vectors', not ${show(mode)}.`)
  }
  return { query: questionIn(query).toWellFormed(), limit }
}

/** So much of a question is looked for, in UTF-16 units: what is longer is a document, and asks at its beginning or its end. */
const longestQuestion = 4_000

function questionIn(text: string): string {
  if (text.length <= longestQuestion) return text
  return `${text.slice(0, longestQuestion / 2)}\n${text.slice(-longestQuestion / 2)}`
}

/** What any store can keep: half of a surrogate pair and the zero character become the replacement character. */
export function cleanText(text: string): string {
  return text.toWellFormed().replaceAll('\0', '\ufffd')
}

type Check = (value: unknown, path: string, problems: Problem[]) => unknown

function checkEntry(entry: unknown, path: string, problems: Problem[]): NewMemory {
  const checked = checkFields(entry, path, entryChecks, problems)
  if (isPlainObject(entry) && entry.text === undefined)
    problems.push({ path: `${path}.text`, message: 'is missing' })
  return checked as unknown as NewMemory
}

function checkFields(
  value: unknown,
  path: string,
  checks: Readonly<Record<string, Check>>,
  problems: Problem[],
): Record<string, unknown> {
  const checked: Record<string, unknown> = {}
  if (!isPlainObject(value)) {
    problems.push({ path, message: `must be an object, not ${show(value)}` })
    return checked
  }
  for (const [name, member] of Object.entries(value)) {
    const check = checks[name]
    if (member === undefined) continue
    if (check) checked[name] = check(member, `${path}.${name}`, problems)
    else
      problems.push({
        path: `${path}.${name}`,
        message: `is not known; there are: ${Object.keys(checks).join(', ')}`,
      })
  }
  return checked
}

const text: Check = (value, path, problems) => {
  if (typeof value !== 'string' || value.trim() === '') {
    problems.push({ path, message: `must be a text, not ${show(value)}` })
    return ''
  }
  if (value.length > longestText) {
    const limit = longestText.toLocaleString('en')
    problems.push({
      path,
      message: `has ${value.length.toLocaleString('en')} characters, and an entry takes ${limit}: divide it, or use ingest`,
    })
  }
  return cleanText(value)
}

const name: Check = (value, path, problems) => {
  if (typeof value === 'string' && value !== '' && value.length <= longestName) return cleanText(value)
  problems.push({ path, message: `must be a text of 1 to ${longestName} characters, not ${show(value)}` })
  return ''
}

const scope: Check = (value, path, problems) => {
  const checked = name(value, path, problems) as string
  if (/^\/|^[^/]+\/$/.test(checked)) {
    problems.push({
      path,
      message: `must be a kind, or a kind and a name, as in user/ada, not ${show(value)}`,
    })
  }
  return checked
}

const lane: Check = (value, path, problems) => (value === '' ? '' : name(value, path, problems))

const number: Check = (value, path, problems) => {
  if (typeof value !== 'number' || !Number.isFinite(value))
    problems.push({ path, message: `must be a number, not ${show(value)}` })
  return value
}

const time: Check = (value, path, problems) => {
  if (typeof value !== 'number' || !Number.isFinite(value))
    problems.push({ path, message: `must be milliseconds since the epoch, not ${show(value)}` })
  return value
}

/** When something happened. It is shown as a day, and dates end somewhere: what is beyond was counted in other units. */
const date: Check = (value, path, problems) => {
  if (typeof value !== 'number' || !(Math.abs(value) <= lastMoment))
    problems.push({ path, message: `must be milliseconds since the epoch, not ${show(value)}` })
  return value
}

const json: Check = (value, path, problems) => {
  const copy = copyJson(value, path, problems)
  if (isPlainObject(value)) return wellFormed(copy as JsonObject)
  problems.push({ path, message: `must be an object, not ${show(value)}` })
  return {}
}

const standing: Check = (value, path, problems) => {
  if (value !== 'adopted' && value !== 'rejected')
    problems.push({ path, message: `is 'adopted' or 'rejected', not ${show(value)}` })
  return value
}

const list =
  (check: Check): Check =>
  (value, path, problems) => {
    if (Array.isArray(value))
      return [...new Set(value.map((item, i) => check(item, `${path}[${i}]`, problems)))]
    problems.push({ path, message: `must be an array, not ${show(value)}` })
    return []
  }

const oneOrMore =
  (check: Check): Check =>
  (value, path, problems) =>
    Array.isArray(value)
      ? value.map((item, i) => check(item, `${path}[${i}]`, problems))
      : check(value, path, problems)

const source: Check = (value, path, problems): MemorySource =>
  checkFields(
    value,
    path,
    { session: name, chunks: list(name), series: name, index: number, resource: name, by: name },
    problems,
  )

const anything: Check = value => value

const entryChecks = {
  text,
  scope,
  category: name,
  tags: list(name),
  metadata: json,
  at: date,
  expires: time,
  source,
  key: name,
  lane,
  standing,
}
const changeChecks = {
  text,
  category: name,
  tags: list(name),
  metadata: json,
  expires: time,
  source,
  lane,
  standing,
}
/** What leaves entries out. */
const narrowing = {
  scope: oneOrMore(scope),
  category: oneOrMore(name),
  tags: list(name),
  metadata: json,
  since: time,
  until: time,
  standing,
  lane,
}
const filterChecks = {
  ...narrowing,
  asker: scope,
  limit: anything,
  cursor: anything,
  floor: anything,
  mode: anything,
  signal: anything,
}

/** Lone surrogates are repaired in the texts of JSON data, too, so that what is kept is what comes back. */
function wellFormed(value: JsonObject): JsonObject {
  const written = JSON.stringify(value)
  // JSON.stringify escapes exactly the lone surrogates and control characters.
  if (!/\\u(?:d[89a-f]|0000)/i.test(written)) return value
  return JSON.parse(
    written.replace(/(?<!\\)((?:\\\\)*)\\u(?:d[89a-f][\da-f]{2}|0000)/gi, '$1\ufffd'),
  ) as JsonObject
}
