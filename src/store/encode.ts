import { fromBase64, isBase64, toBase64 } from '../base/base64.ts'
import { type Digest, sha256 } from '../base/digest.ts'
import { RathError } from '../base/errors.ts'
import { isPlainObject, type Json } from '../base/json.ts'
import type { BlobRow } from './driver.ts'

/** A text longer than this many characters goes out of line. */
export const inlineLimit = 16 * 1024
const previewLength = 512

/** How a blob's bytes turn back into the value they were taken from. */
type Form = 'text' | 'base64' | 'json'

/** Stands in a row for a payload that lies in a blob. A value of the user's that looks like one is wrapped in `{ "$blob": null }`. */
interface BlobReference {
  readonly $blob: Digest
  readonly as: Form
  readonly size: number
  readonly preview: string
}

export interface Encoded {
  readonly text: string
  readonly blobs: readonly BlobRow[]
  /** Blobs that the row keeps: those, and the packs of files that the value names. */
  readonly keeps: readonly Digest[]
}

const none: readonly never[] = Object.freeze([])

/** JSON text of a value with its large parts out of line. */
export function encode(value: Json): Encoded {
  return encodeWritten(value, JSON.stringify(value))
}

/** The same, for a value whose JSON text is known. */
export function encodeWritten(value: Json, plain: string): Encoded {
  const packs = packsIn(plain)
  if (plain.length <= inlineLimit && !mentionsBlob(plain)) return { text: plain, blobs: none, keeps: packs }
  const blobs: BlobRow[] = []
  const text = JSON.stringify(outline(value, '', blobs))
  return { text, blobs, keeps: blobs.length === 0 ? packs : [...blobs.map(blob => blob.id), ...packs] }
}

/** Packs of files that a runtime names beside a tree, `"packs":["…"]`: the store keeps them as long as the row. */
function packsIn(plain: string): readonly Digest[] {
  if (!plain.includes('"packs":["')) return none
  const lists = plain.matchAll(/"packs":\["([0-9a-f]{64}(?:","[0-9a-f]{64})*)"\]/g)
  return [...new Set([...lists].flatMap(([, list = '']) => list.split('","')))]
}

/** A single character is found ten times faster, and most texts have none. */
function mentionsBlob(text: string): boolean {
  return text.includes('$') && text.includes('"$blob"')
}

/** Whether a text is the value's own JSON, with nothing of it out of line. */
export function isWhole(text: string): boolean {
  return !mentionsBlob(text)
}

function outline(value: Json, key: string, blobs: BlobRow[]): Json {
  if (typeof value === 'string') return value.length > inlineLimit ? moveText(value, key, blobs) : value
  if (typeof value !== 'object' || value === null) return value
  const before = blobs.length
  const smaller = Array.isArray(value)
    ? value.map(item => outline(item, '', blobs))
    : outlineObject(value, blobs)
  if (key === '' || JSON.stringify(smaller).length <= inlineLimit) return smaller
  // Many small parts add up, too: then the whole of them moves, as one blob that refers to no other.
  blobs.length = before
  const text = JSON.stringify(value)
  return move(new TextEncoder().encode(text), 'json', text, blobs)
}

function outlineObject(value: object, blobs: BlobRow[]): Json {
  const smaller: Record<string, Json> = {}
  for (const [key, member] of Object.entries(value)) {
    const moved = outline(member, key, blobs)
    if (key === '__proto__') Object.defineProperty(smaller, key, { value: moved, enumerable: true })
    else smaller[key] = moved
  }
  return '$blob' in value ? { $blob: null, value: smaller } : smaller
}

function moveText(text: string, key: string, blobs: BlobRow[]): Json {
  if (key === 'data' && isBase64(text)) {
    const bytes = fromBase64(text)
    // Base64 may be written in more than one way; bytes come back in the usual one.
    if (toBase64(bytes) === text) return move(bytes, 'base64', '', blobs)
  }
  // A lone surrogate has no UTF-8 form; its JSON escape has.
  if (!text.isWellFormed()) return move(new TextEncoder().encode(JSON.stringify(text)), 'json', text, blobs)
  return move(new TextEncoder().encode(text), 'text', text, blobs)
}

function move(bytes: Uint8Array, as: Form, text: string, blobs: BlobRow[]): Json {
  const id = sha256(bytes)
  blobs.push({ id, bytes })
  const reference: BlobReference = {
    $blob: id,
    as,
    size: bytes.length,
    preview: text.slice(0, previewLength),
  }
  return { ...reference }
}

/** Loads blobs by id; the map holds at least those asked for, or the store is damaged. */
export type LoadBlobs = (ids: readonly Digest[]) => Promise<ReadonlyMap<Digest, Uint8Array>>

/** The values that `encode` made texts of. Blobs are fetched in one go, and only when there are any. */
export async function decodeAll(texts: readonly string[], load: LoadBlobs): Promise<Json[]> {
  const values = texts.map(parseText)
  const marked = texts.map(mentionsBlob)
  const wanted = new Set<Digest>()
  for (const [i, value] of values.entries()) if (marked[i]) collect(value, wanted)
  const blobs = wanted.size > 0 ? await load([...wanted]) : new Map<Digest, Uint8Array>()
  return values.map((value, i) => (marked[i] ? inline(value, blobs) : value))
}

/** The value of a text with previews where its blobs would be; for showing, never for verifying. */
export function decodePreview(text: string): Json {
  const value = parseText(text)
  return mentionsBlob(text) ? mapReferences(value, reference => reference.preview) : value
}

function parseText(text: string): Json {
  try {
    return JSON.parse(text)
  } catch (cause) {
    throw new RathError(
      'store-corrupt',
      'A row of the store is not the JSON that was written. Restore the store from a backup; the rest of it is readable.',
      { cause },
    )
  }
}

function inline(value: Json, blobs: ReadonlyMap<Digest, Uint8Array>): Json {
  return mapReferences(value, reference => {
    const bytes = blobs.get(reference.$blob)
    if (!bytes || sha256(bytes) !== reference.$blob) throw damaged(reference.$blob)
    if (reference.as === 'base64') return toBase64(bytes)
    const text = new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytes)
    return reference.as === 'text' ? text : JSON.parse(text)
  })
}

function mapReferences(value: Json, resolve: (reference: BlobReference) => Json): Json {
  if (typeof value !== 'object' || value === null) return value
  if (Array.isArray(value)) return value.map(item => mapReferences(item, resolve))
  if (isReference(value)) return resolve(value)
  const source = '$blob' in value ? (value as { value: object }).value : value
  const copy: Record<string, Json> = {}
  for (const [key, member] of Object.entries(source)) {
    const mapped = mapReferences(member, resolve)
    if (key === '__proto__') Object.defineProperty(copy, key, { value: mapped, enumerable: true })
    else copy[key] = mapped
  }
  return copy
}

function collect(value: Json, ids: Set<Digest>): void {
  mapReferences(value, reference => {
    ids.add(reference.$blob)
    return null
  })
}

function isReference(value: object): value is BlobReference {
  return isPlainObject(value) && typeof value.$blob === 'string'
}

function damaged(id: Digest): RathError {
  return new RathError(
    'store-corrupt',
    `Blob ${id} is missing from the store or does not match its digest. Restore the store from a backup; the rest of it is readable.`,
    { data: { blob: id } },
  )
}
