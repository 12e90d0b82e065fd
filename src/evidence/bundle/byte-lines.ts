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

/** The lines of a source, split at line feeds and nowhere else. What follows the last one is a line too, unless it is empty. */
export async function* byteLines(source: ByteSource): AsyncGenerator<ByteLine, void, undefined> {
  const whole = typeof source === 'string' || source instanceof Uint8Array
  let rest: Uint8Array[] = []
  for await (const piece of whole ? [source] : source) {
    const bytes = typeof piece === 'string' ? new TextEncoder().encode(piece) : piece
    let start = 0
    for (let end = bytes.indexOf(0x0a); end >= 0; end = bytes.indexOf(0x0a, start)) {
      rest.push(bytes.subarray(start, end))
      yield { bytes: joined(rest), ended: true }
      rest = []
      start = end + 1
    }
    if (start < bytes.length) rest.push(bytes.slice(start))
  }
  if (rest.length > 0) yield { bytes: joined(rest), ended: false }
}

function joined(pieces: readonly Uint8Array[]): Uint8Array {
  return pieces.length === 1 ? (pieces[0] as Uint8Array) : Buffer.concat(pieces)
}
