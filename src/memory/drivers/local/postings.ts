/** In which entries a word stands, ascending, and how often in each. */
export interface Postings {
  readonly docs: number[]
  readonly counts: number[]
}

/**
 * Bytes of a list: for each entry the distance from the one before (from `first` for the first), doubled, with one added when a count above 1
 * follows. Numbers are written seven bits to a byte, the lowest first.
 */
export function encodePostings({ docs, counts }: Postings, first: number): Uint8Array {
  let buffer = new Uint8Array(docs.length * 3 + 16)
  let length = 0
  let previous = first
  const put = (number: number) => {
    let rest = number
    while (rest >= 0x80) {
      buffer[length++] = (rest & 0x7f) | 0x80
      rest >>>= 7
    }
    buffer[length++] = rest
  }
  for (let i = 0; i < docs.length; i++) {
    if (length + 12 > buffer.length) {
      const larger = new Uint8Array(buffer.length * 2)
      larger.set(buffer)
      buffer = larger
    }
    const doc = docs[i] as number
    const count = counts[i] as number
    put((doc - previous) * 2 + (count > 1 ? 1 : 0))
    if (count > 1) put(count)
    previous = doc
  }
  return buffer.subarray(0, length)
}

/** Decoded lists, one behind the other, in arrays that are used again for the next query. */
export class PostingBuffer {
  docs = new Int32Array(4_096)
  counts = new Uint16Array(4_096)
  length = 0

  /** Makes room for as many more. */
  reserve(more: number): void {
    if (this.length + more <= this.docs.length) return
    const size = Math.max(this.docs.length * 2, this.length + more)
    const docs = new Int32Array(size)
    const counts = new Uint16Array(size)
    docs.set(this.docs)
    counts.set(this.counts)
    this.docs = docs
    this.counts = counts
  }

  add(doc: number, count: number): void {
    this.reserve(1)
    this.docs[this.length] = doc
    this.counts[this.length++] = count
  }

  /** Decodes what `encodePostings` wrote; room for all of it must have been reserved. */
  decode(bytes: Uint8Array, first: number): void {
    const { docs, counts } = this
    const end = bytes.length
    let { length } = this
    let at = 0
    let doc = first
    while (at < end) {
      let byte = bytes[at++] as number
      let number = byte & 0x7f
      for (let shift = 7; byte >= 0x80; shift += 7) {
        byte = bytes[at++] as number
        number |= (byte & 0x7f) << shift
      }
      doc += number >>> 1
      let count = 1
      if (number & 1) {
        byte = bytes[at++] as number
        count = byte & 0x7f
        for (let shift = 7; byte >= 0x80; shift += 7) {
          byte = bytes[at++] as number
          count |= (byte & 0x7f) << shift
        }
      }
      docs[length] = doc
      counts[length++] = count
    }
    this.length = length
  }
}
