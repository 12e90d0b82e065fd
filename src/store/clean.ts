import { fromBase64, isBase64, toBase64 } from '../base/base64.ts'
import type { Json } from '../base/json.ts'
import { isBytes, isOwn } from './chunk-fields.ts'

/** How texts and bytes are cleaned. Each returns its very argument when there was nothing to clean. */
export interface Cleaner {
  text(text: string): string
  bytes(bytes: Uint8Array): Uint8Array
}

/** A copy of any JSON data where something changed, names of members included; the value itself where nothing did. */
export function cleanJson(value: Json, cleaner: Cleaner, name = ''): Json {
  if (typeof value === 'string') return name === 'data' ? cleanBytes(value, cleaner) : cleaner.text(value)
  return mapMembers(
    value,
    (member, key) => cleanJson(member, cleaner, key),
    key => cleaner.text(key),
  )
}

/** Choices, digests and kinds: a reader depends on them, and nobody can put a secret there. */
const fixed = new Set([
  ...['kind', 'type', 'op', 'change', 'verdict', 'retry'],
  ...['origin', 'prompt', 'tree', 'replaced', 'ancestor', 'head'],
])

/** The same for a chunk, whose own structure is left alone. */
export function cleanChunk(value: Json, cleaner: Cleaner): Json {
  if (typeof value === 'string') return cleaner.text(value)
  return mapMembers(value, (member, name, holder) => {
    if (fixed.has(name) || (name === 'from' && Array.isArray(member))) return member
    if (isBytes(name, holder)) return cleanBytes(member as string, cleaner)
    return isOwn(name) ? cleanJson(member, cleaner, name) : cleanChunk(member, cleaner)
  })
}

/** A secret inside a file's bytes does not show in their base64, so they are looked at as bytes, too. */
function cleanBytes(text: string, cleaner: Cleaner): string {
  if (text === '' || !isBase64(text)) return cleaner.text(text)
  const given = fromBase64(text)
  const cleaned = cleaner.bytes(given)
  return cleaned === given ? cleaner.text(text) : toBase64(cleaned)
}

function mapMembers(
  value: Json,
  map: (member: Json, name: string, holder: object) => Json,
  rename = (name: string) => name,
): Json {
  if (typeof value !== 'object' || value === null) return value
  if (Array.isArray(value)) {
    const copy = value.map(item => map(item, '', value))
    return copy.some((item, i) => item !== value[i]) ? Object.freeze(copy) : value
  }
  let copy: [string, Json][] | undefined
  for (const name of Object.keys(value)) {
    const member = (value as Record<string, Json>)[name] as Json
    const newName = rename(name)
    const mapped = map(member, name, value)
    if (newName === name && mapped === member) continue
    copy ??= Object.entries(value)
    copy[Object.keys(value).indexOf(name)] = [newName, mapped]
  }
  return copy ? Object.freeze(Object.fromEntries(copy)) : value
}
