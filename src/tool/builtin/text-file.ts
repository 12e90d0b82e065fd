import { ToolError } from '../tool-error.ts'

/**
 * The text in a file's bytes, every character kept, a NUL among them too. What is not UTF-8 text is refused with another way to look at it. So is
 * what is full of NULs: UTF-16 and many binary formats happen to be valid UTF-8.
 */
export function textOf(bytes: Uint8Array, path: string): string {
  const nuls = countNuls(bytes)
  if (nuls * 10 > bytes.length) throw notText(path, bytes, `${nuls} of them NUL, as in UTF-16 or binary data`)
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
  } catch {
    throw notText(path, bytes, 'not UTF-8')
  }
}

function countNuls(bytes: Uint8Array): number {
  let count = 0
  for (let at = bytes.indexOf(0); at >= 0; at = bytes.indexOf(0, at + 1)) count++
  return count
}

function notText(path: string, { length }: Uint8Array, why: string): ToolError {
  return new ToolError(
    'threw',
    `${path} is not a text file (${length} bytes, ${why}). Look at it with a command such as file, xxd or strings, or convert it.`,
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
