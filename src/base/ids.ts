const pool = new Uint16Array(5 * 256)
let unused = 0
let lastTime = 0
let sequence = 0
let beginning = ''
let end = ''

const hex = Array.from({ length: 0x1000 }, (_, value) => value.toString(16).padStart(3, '0'))

/**
 * A new UUID, version 7: unique anywhere, and sorting by time of creation, so that rows keyed by it are written side by side.
 * Ids made in the same millisecond keep their order within one process: they share most of their random end and differ in a counter,
 * and in their last three digits, which is where people look.
 */
export function newId(now: number = Date.now()): string {
  if (now > lastTime) startMillisecond(now, 0x7ff)
  // More than the counter holds borrow from the next millisecond rather than lose their order.
  else if (++sequence > 0xfff) startMillisecond(lastTime + 1, 0)
  return beginning + hex[sequence] + end + hex[random() & 0xfff]
}

/** When an id was made, in milliseconds since the epoch; undefined when it is not one of `newId`. */
export function timeOf(id: string): number | undefined {
  const [, high, low] =
    /^([0-9a-f]{8})-([0-9a-f]{4})-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/.exec(id) ?? []
  return high === undefined ? undefined : Number.parseInt(`${high}${low}`, 16)
}

function startMillisecond(time: number, highestStart: number): void {
  lastTime = time
  sequence = random() & highestStart
  const digits = time.toString(16).padStart(12, '0')
  beginning = `${digits.slice(0, 8)}-${digits.slice(8)}-7`
  end = `-${(0x8000 | (random() & 0x3fff)).toString(16)}-${word()}${word()}${hex[random() & 0xf]?.slice(2)}`
}

function word(): string {
  return random().toString(16).padStart(4, '0')
}

function random(): number {
  if (unused === 0) {
    globalThis.crypto.getRandomValues(pool)
    unused = pool.length
  }
  return pool[--unused] as number
}
