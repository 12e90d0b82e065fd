const pool = new Uint8Array(16 * 256)
let unused = 0
let lastTime = 0
let sequence = 0

const hex = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, '0'))

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
  const carried = sequence > 0xfff ? time + 1 : time
  if (carried !== time) sequence = 0
  lastTime = carried

  const high = Math.floor(carried / 0x10000)
  const low = carried & 0xffff
  return `${byte(high >>> 24)}${byte(high >>> 16)}${byte(high >>> 8)}${byte(high)}-${byte(low >>> 8)}${byte(low)}-${byte(
    0x70 | (sequence >>> 8),
  )}${byte(sequence)}-${byte(0x80 | (random(1) & 0x3f))}${byte(random(2))}-${byte(random(3))}${byte(random(4))}${byte(
    random(5),
  )}${byte(random(6))}${byte(random(7))}${byte(random(8))}`
}

function random(offset: number): number {
  return pool[unused + offset] as number
}

function byte(value: number): string {
  return hex[value & 0xff] as string
}
