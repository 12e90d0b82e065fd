import { RathError, show } from '../base/errors.ts'
import { isPlainObject, type Problem } from '../base/json.ts'
import type { Surroundings } from './surroundings.ts'

export type Fields = Readonly<Record<string, unknown>>

/** The object in a JSON file; nothing when there is no file. */
export function readObject(path: string, { files }: Surroundings): Fields | undefined {
  return parseObject(path, readText(path, files))
}

export function parseObject(path: string, text: string | undefined): Fields | undefined {
  if (text === undefined) return undefined
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    // What V8 says about a mistake quotes the text around it, which may be a key. Its place is enough.
    const before = text.slice(0, mistakeIn(text)).split('\n')
    const line = before.length
    throw new RathError(
      'config-malformed',
      `${path} is not JSON: line ${line}, column ${(before.at(-1)?.length ?? 0) + 1}. Correct it, or remove the file.`,
      { data: { path, line } },
    )
  }
  if (isPlainObject(value)) return value
  throw new RathError('config-malformed', `${path} holds ${show(value)}, not an object. Start it with {.`, {
    data: { path },
  })
}

/** The text of a file; nothing when there is none. */
export function readText(path: string, files: Surroundings['files']): string | undefined {
  try {
    return files.read(path)
  } catch (error) {
    throw new RathError(
      'config-malformed',
      `${path} is there and cannot be read: ${(error as Error).message}. Make it readable for you, or remove it.`,
      { cause: error, data: { path } },
    )
  }
}

/** Where JSON goes wrong: the longest beginning that could still become JSON ends there. */
function mistakeIn(text: string): number {
  let fine = 0
  let wrong = text.length + 1
  while (wrong - fine > 1) {
    const middle = (fine + wrong) >> 1
    if (couldGoOn(text.slice(0, middle))) fine = middle
    else wrong = middle
  }
  return fine
}

function couldGoOn(beginning: string): boolean {
  try {
    JSON.parse(beginning)
    return true
  } catch (error) {
    const { message } = error as Error
    const position = /position (\d+)/.exec(message)?.[1]
    return position === undefined ? /end of JSON/.test(message) : Number(position) >= beginning.length
  }
}

/** The object at a name, empty when there is none. What does not fit is added to `problems` by its path. */
export function objectAt(fields: Fields, name: string, path: string, problems: Problem[]): Fields {
  const value = fields[name]
  if (value === undefined || value === null) return {}
  if (isPlainObject(value)) return value
  problems.push({ path, message: `${show(value)} is not an object` })
  return {}
}

export function textAt(fields: Fields, name: string, path: string, problems: Problem[]): string | undefined {
  const value = fields[name]
  if (value === undefined || value === null) return undefined
  if (typeof value === 'string') return value
  problems.push({ path, message: `a ${typeof value} is not a string` })
  return undefined
}

export function numberAt(
  fields: Fields,
  name: string,
  path: string,
  problems: Problem[],
): number | undefined {
  const value = fields[name]
  if (value === undefined || value === null) return undefined
  if (typeof value === 'number') return value
  problems.push({ path, message: `${show(value)} is not a number` })
  return undefined
}

export function urlAt(fields: Fields, path: string, problems: Problem[]): string | undefined {
  const url = textAt(fields, 'base_url', path, problems)
  if (url === undefined || /^https?:$/.test(URL.parse(url)?.protocol ?? '')) return url
  problems.push({ path, message: `${show(url)} is not an http or https URL` })
  return undefined
}
