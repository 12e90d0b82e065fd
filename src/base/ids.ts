const pool = new Uint8Array(16 * 256)
let unused = 0
let lastTime = 0
let sequence = 0

/** Character codes of the id being made; one call turns them into a flat string, which costs least memory to keep. */
const codes = new Uint8Array(36).fill(0x2d)
const digits = new TextEncoder().encode('0123456789abcdef')

/**
 * A new UUID, version 7: unique anywhere, and sorting by time of creation, so that rows keyed by it are
 * written side by side. Ids made in the same millisecond keep their order within one process.
 */
export function newId(now: number = Date.now()): string {
  if (unused === 0) {
    globalThis.crypto.getRandomValues(pool)
    unused = pool.length
  }
  unused -= 16
  const time = Math.max(now, lastTime)
  sequence = time === lastTime ? sequence + 1 : random(0) & 0x7f
  // More than 4096 ids in a millisecond borrow from the next one rather than lose their order.
  lastTime = sequence > 0xfff ? time + 1 : time
  if (lastTime !== time) sequence = 0

  const high = Math.floor(lastTime / 0x10000)
  put(0, high >>> 24)
  put(2, high >>> 16)
  put(4, high >>> 8)
  put(6, high)
  put(9, lastTime >>> 8)
  put(11, lastTime)
  put(14, 0x70 | (sequence >>> 8))
  put(16, sequence)
  put(19, 0x80 | (random(1) & 0x3f))
  put(21, random(2))
  for (let i = 0; i < 6; i++) put(24 + 2 * i, random(3 + i))
  return String.fromCharCode.apply(null, codes as unknown as number[])
}

function random(offset: number): number {
  return pool[unused + offset] as number
}

function put(position: number, byte: number): void {
  codes[position] = digits[(byte >>> 4) & 0xf] as number
  codes[position + 1] = digits[byte & 0xf] as number
}
