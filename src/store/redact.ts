import { RathError } from '../base/errors.ts'
import { isJson, type Json, type JsonObject } from '../base/json.ts'
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
  /** The same error with a clean message, data and causes. The hook does not see it: it is not written. */
  error(error: unknown): unknown
}

/** Shorter values would be found inside ordinary words. */
const shortestSecret = 8

/** The variables of an environment whose names say that they hold a secret. */
export function secretsOf(environment: Readonly<Record<string, string | undefined>>): Record<string, string> {
  const secrets: Record<string, string> = {}
  for (const [name, value] of Object.entries(environment)) {
    if (value === undefined || value.length < shortestSecret) continue
    const words = name.toUpperCase()
    const secret = /(^|_)(API_?KEY|KEY|TOKEN|SECRET|CREDENTIALS?)(_|$)|PASSW(OR)?D(_|$)/.test(words)
    if (secret && !/_(FILE|PATH|DIR|URL|ID|NAME)$/.test(words)) secrets[name] = value
  }
  return secrets
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

  function error(thrown: unknown): unknown {
    if (!pattern || !cutShort || !(thrown instanceof Error)) return thrown
    const clean = (given: string) => withoutSecrets(given).replace(cutShort, '[redacted]…')
    const message = clean(thrown.message)
    const cause = error(thrown.cause)
    if (!(thrown instanceof RathError)) {
      if (message === thrown.message && cause === thrown.cause) return thrown
      return new Error(message, { cause })
    }
    const data = cleanJson(thrown.data, { text: clean, bytes: given => given }) as JsonObject
    if (message === thrown.message && cause === thrown.cause && data === thrown.data) return thrown
    return new RathError(thrown.code, message, { cause, data })
  }

  return { isIdle, text, json, chunk, bytes, error }
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
