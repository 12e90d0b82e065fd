import { RathError } from '../../base/errors.ts'

/** A line of a file: its bytes without the line feed, and whether one followed. */
export interface ByteLine {
  readonly bytes: Uint8Array
  readonly ended: boolean
}

export type ByteSource =
  | string
  | Uint8Array
  | Iterable<string | Uint8Array>
  | AsyncIterable<string | Uint8Array>

/** No record is longer than this, so that a file without line feeds does not fill the memory. */
const longestLine = 256 * 1024 * 1024

/** By then a line that is not a record can be told: records begin with a brace. */
const enoughToTell = 64 * 1024

/**
 * The lines of a source, split at line feeds and nowhere else. What follows the last one is a line too, unless it is empty. A line that no
 * record can be is refused with `format-malformed` before all of it is read.
 */
export async function* byteLines(
  source: ByteSource,
  longest = longestLine,
): AsyncGenerator<ByteLine, void, undefined> {
  let number = 1
  let length = 0
  const whole = typeof source === 'string' || source instanceof Uint8Array
  let rest: Uint8Array[] = []
  for await (const piece of whole ? [source] : source) {
    const bytes = typeof piece === 'string' ? new TextEncoder().encode(piece) : piece
    let start = 0
    for (let end = bytes.indexOf(0x0a); end >= 0; end = bytes.indexOf(0x0a, start)) {
      rest.push(bytes.subarray(start, end))
      number++
      length = 0
      yield { bytes: joined(rest), ended: true }
      rest = []
      start = end + 1
    }
    if (start === bytes.length) continue
    rest.push(bytes.slice(start))
    length += bytes.length - start
    if (length > longest || (length > enoughToTell && !whole && !isRecord(rest[0] as Uint8Array)))
      throw tooLong(number, length, longest)
  }
  if (rest.length > 0) yield { bytes: joined(rest), ended: false }
}

/** A byte order mark may come first. */
function isRecord(bytes: Uint8Array): boolean {
  const at = bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf ? 3 : 0
  return bytes[at] === 0x7b
}

function tooLong(line: number, length: number, longest: number): RathError {
  const why =
    length > longest
      ? `is longer than ${longest} bytes, and no record is`
      : 'does not begin as a record does, with {'
  return new RathError(
    'format-malformed',
    `Line ${line} ${why}: this is not a bundle or a session file. Give a file that rath export wrote, or a page of rath dossier.`,
    { data: { line } },
  )
}

function joined(pieces: readonly Uint8Array[]): Uint8Array {
  return pieces.length === 1 ? (pieces[0] as Uint8Array) : Buffer.concat(pieces)
}
