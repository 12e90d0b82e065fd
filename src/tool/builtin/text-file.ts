import { ToolError } from '../tool-error.ts'

/** The text in a file's bytes, every character kept. What is not UTF-8 text is refused with another way to look at it. */
export function textOf(bytes: Uint8Array, path: string): string {
  try {
    if (!bytes.includes(0)) return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
  } catch {
    // Not UTF-8.
  }
  throw new ToolError(
    'threw',
    `${path} is not a text file (${bytes.length} bytes, not UTF-8). Look at it with a command such as file, xxd or strings, or convert it.`,
  )
}

const signatures: readonly (readonly [mediaType: string, at: number, bytes: string])[] = [
  ['image/png', 0, '\x89PNG\r\n\x1a\n'],
  ['image/jpeg', 0, '\xff\xd8\xff'],
  ['image/gif', 0, 'GIF87a'],
  ['image/gif', 0, 'GIF89a'],
  ['image/webp', 8, 'WEBP'],
]

/** The media type of an image that models can look at, by how it begins and not by its name. */
export function imageType(bytes: Uint8Array): string | undefined {
  const beginning = String.fromCharCode(...bytes.subarray(0, 16))
  const found = signatures.find(([, at, expected]) => beginning.startsWith(expected, at))
  return found?.[0] === 'image/webp' && !beginning.startsWith('RIFF') ? undefined : found?.[0]
}
