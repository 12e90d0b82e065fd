/**
 * A zlib stream that holds bytes as they are. Eight times as fast as compressing them, which is what the first snapshot of a large folder
 * spends its time on; `prune` compresses later.
 */
export function zlibStored(content: Uint8Array): Buffer {
  const blocks = Math.max(1, Math.ceil(content.length / largestBlock))
  const stream = Buffer.allocUnsafe(2 + blocks * 5 + content.length + 4)
  stream[0] = 0x78
  stream[1] = 0x01
  let at = 2
  for (let block = 0; block < blocks; block++) {
    const start = block * largestBlock
    const length = Math.min(largestBlock, content.length - start)
    stream[at] = block === blocks - 1 ? 1 : 0
    stream.writeUInt16LE(length, at + 1)
    stream.writeUInt16LE(length ^ 0xffff, at + 3)
    stream.set(content.subarray(start, start + length), at + 5)
    at += 5 + length
  }
  stream.writeUInt32BE(adler32(content), at)
  return stream
}

const largestBlock = 0xffff
const modulus = 65_521
/** Bytes that can be added up before the sums leave 32 bits. */
const longestRun = 5_552

function adler32(bytes: Uint8Array): number {
  let a = 1
  let b = 0
  for (let at = 0; at < bytes.length; ) {
    const end = Math.min(at + longestRun, bytes.length)
    for (; at + 4 <= end; at += 4) {
      const w = bytes[at] as number
      const x = bytes[at + 1] as number
      const y = bytes[at + 2] as number
      const z = bytes[at + 3] as number
      b += 4 * a + 4 * w + 3 * x + 2 * y + z
      a += w + x + y + z
    }
    for (; at < end; at++) {
      a += bytes[at] as number
      b += a
    }
    a %= modulus
    b %= modulus
  }
  return b * 0x10000 + a
}
