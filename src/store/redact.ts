import { RathError } from '../base/errors.ts'
import { isJson, type Json } from '../base/json.ts'
import type { ChunkBody } from '../session/chunk.ts'
import { parseRecordedChunk } from '../session/parse.ts'
import { cleanChunk, cleanJson } from './clean.ts'
import type { Redact } from './spec.ts'

/** Takes secrets out of whatever is about to be written. Each method returns its very argument when there was nothing to take. */
export interface Redactor {
  /** There is nothing to take: no secret is known, and nobody else looks. */
  readonly isIdle: boolean
  text(text: string): string
  /** `written` is its JSON text, where that is known. */
  json<T extends Json>(value: T, written?: string): T
  chunk(body: ChunkBody, written?: string): ChunkBody
  bytes(bytes: Uint8Array): Uint8Array
  /** An error of the same class with a clean message, stack, data and causes; the very same one when it holds no secret. */
  error<T>(error: T): T
  /** How many characters at the end of a text may be the beginning of a secret whose rest is still to come. */
  unfinished(text: string): number
}

/** Shorter values would be found inside ordinary words. */
const shortestSecret = 8

/** The variables of an environment that hold a secret: their names say so, or they are an address with a password in it. */
export function secretsOf(environment: Readonly<Record<string, string | undefined>>): Record<string, string> {
  const secrets: Record<string, string> = {}
  for (const [name, value] of Object.entries(environment)) {
    if (value === undefined || value.length < shortestSecret) continue
    if (saysSecret(name.toUpperCase(), value) || addressWithPassword.test(value)) secrets[name] = value
  }
  return secrets
}

const secretWords =
  /(^|_)(API_?KEYS?|KEYS?|TOKENS?|SECRETS?|CREDENTIALS?|PAT|JWT|COOKIES?|PASS)(_|$)|PASS(WD|WORD|PHRASE)S?(_|$)|^SSHPASS$|(^|_)(AUTH|AUTH_CONFIG|AUTHORIZATION|BEARER|DSN|CONN(ECTION)?_STR(ING)?)$|ACCESS_KEY_ID$/
const addressWithPassword = /^[a-z][a-z0-9+.-]*:\/\/[^\s/@]*:[^\s/@]+@/i

function saysSecret(name: string, value: string): boolean {
  // PWD alone is the current folder, and so may be others that end like it.
  if (/.(?<!^OLD)PWD$/.test(name)) return !/^([/~.]|[a-z]:\\)/i.test(value)
  if (/_(FILE|PATH|DIR|URL|NAME)$/.test(name)) return false
  return secretWords.test(name) && (!name.endsWith('_ID') || name.endsWith('ACCESS_KEY_ID'))
}

export function createRedactor(secrets: Readonly<Record<string, string>>, hook?: Redact): Redactor {
  const names = new Map<string, string>()
  for (const [name, value] of Object.entries(secrets)) {
    if (value.length >= shortestSecret && !names.has(value)) names.set(value, `[redacted:${name}]`)
  }
  // Longest first, so that a key that contains another is taken out whole.
  const values = [...names.keys()].sort((a, b) => b.length - a.length)
  const pattern = values.length > 0 ? new RegExp(values.map(escapePattern).join('|'), 'g') : undefined

  const isIdle = !pattern && !hook

  // Messages show long values cut short, so a secret may be there in part.
  const starts = values.map(value => escapePattern(value.slice(0, shortestSecret)))
  const cutShort = pattern && new RegExp(`(?:${starts.join('|')})[^\\s"]*…`, 'g')

  const withoutSecrets = (given: string) =>
    pattern && given.length >= shortestSecret
      ? given.replace(pattern, value => names.get(value) as string)
      : given

  function text(given: string): string {
    const clean = withoutSecrets(given)
    if (!hook) return clean
    const hooked: unknown = hook(clean)
    if (typeof hooked === 'string') return hooked
    throw new RathError('invalid-argument', `The redact hook must return a string, not ${typeof hooked}.`)
  }

  /** A hook that fails must not hide what went wrong. */
  function hooked(given: string): string {
    try {
      return text(given)
    } catch {
      return withoutSecrets(given)
    }
  }

  // A text that holds no secret as JSON writes it, and no bytes, need not be looked at part by part.
  const inJson = pattern && new RegExp(values.map(value => escapePattern(asInJson(value))).join('|'))
  const canTell = !hook && values.every(value => value.isWellFormed())
  const isSurelyClean = (written: string | undefined) =>
    canTell && written !== undefined && !inJson?.test(written) && !written.includes('"data":"')

  function json<T extends Json>(value: T, written?: string): T {
    if (isIdle || isSurelyClean(written ?? writtenIfJson(value))) return value
    return cleanJson(value, { text, bytes }) as T
  }

  function chunk(body: ChunkBody, written?: string): ChunkBody {
    if (isIdle || isSurelyClean(written ?? writtenIfJson(body))) return body
    const clean = cleanChunk(body as unknown as Json, { text, bytes })
    // A hook may leave an empty string where one must not be.
    return clean === (body as unknown) ? body : parseRecordedChunk(clean, 'redacted chunk')
  }

  function bytes(given: Uint8Array): Uint8Array {
    if (!pattern && !hook) return given
    const buffer = Buffer.from(given.buffer, given.byteOffset, given.byteLength)
    const asUtf8 = buffer.toString('utf8')
    const isText = Buffer.from(asUtf8, 'utf8').equals(buffer)
    // Latin-1 keeps every byte as one character, so that binary data comes through unharmed. It is no text for the hook.
    const before = isText ? asUtf8 : buffer.toString('latin1')
    const after = isText ? text(before) : withoutSecrets(before)
    return after === before ? given : new Uint8Array(Buffer.from(after, isText ? 'utf8' : 'latin1'))
  }

  function error<T>(thrown: T): T {
    if (isIdle || !(thrown instanceof Error)) return thrown
    return cleanError(thrown, given => {
      const clean = hooked(given)
      return cutShort ? clean.replace(cutShort, '[redacted]…') : clean
    })
  }

  function unfinished(given: string): number {
    let most = 0
    for (const value of values) {
      for (let at = Math.max(0, given.length - value.length + 1); at < given.length - most; at++) {
        if (given[at] === value[0] && value.startsWith(given.slice(at))) most = given.length - at
      }
    }
    return most
  }

  return { isIdle, text, json, chunk, bytes, error, unfinished }
}

/**
 * A copy where anything of it changed, so that nobody else's error is altered. It is of the same class and has the same members, a stack among
 * them, and whatever they hold that is data or an error is clean too.
 */
function cleanError<T extends Error>(given: T, clean: (text: string) => string, around: Error[] = []): T {
  if (around.includes(given) || around.length > 20) return given
  const path = [...around, given]
  const value = (member: unknown): unknown => {
    if (typeof member === 'string') return clean(member)
    if (member instanceof Error) return cleanError(member, clean, path)
    if (Array.isArray(member) && member.some(item => item instanceof Error)) return changed(member, value)
    return isJson(member) ? cleanJson(member, { text: clean, bytes: bytes => bytes }) : member
  }
  const members = Object.getOwnPropertyDescriptors(given) as Record<string, PropertyDescriptor>
  let isClean = true
  for (const name of Object.keys(members)) {
    const before: unknown = given[name as keyof T]
    const after = value(before)
    if (after !== before) isClean = false
    // A stack may be computed by what only the error itself has.
    const enumerable = members[name]?.enumerable === true
    members[name] = { value: after, enumerable, writable: true, configurable: true }
  }
  return isClean ? given : Object.create(Object.getPrototypeOf(given), members)
}

function changed(items: readonly unknown[], map: (item: unknown) => unknown): readonly unknown[] {
  const copy = items.map(map)
  return copy.some((item, i) => item !== items[i]) ? copy : items
}

/** What is no JSON is refused where it is written, and has to be clean there too. */
function writtenIfJson(value: unknown): string | undefined {
  return isJson(value) ? JSON.stringify(value) : undefined
}

function asInJson(value: string): string {
  return JSON.stringify(value).slice(1, -1)
}

function escapePattern(value: string): string {
  return value.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')
}
