import { read, readFileSync, readSync, write, writeSync } from 'node:fs'
import { promisify } from 'node:util'

/** So much is copied from or to the memory of the system in less time than another thread takes to begin with it. */
export function isQuick(bytes: number): boolean {
  return bytes <= 128 * 1024
}

const readSlowly = promisify(read)
const writeSlowly = promisify(write)
/** Node takes lengths of 31 bits, and Linux does a little less in one call. */
const mostAtOnce = 1024 ** 3

/** All that an open file of this size holds. */
export async function readWhole(fd: number, size: number): Promise<Buffer> {
  // A small one may hold more than its size says.
  return isQuick(size) ? readFileSync(fd) : readBytes(fd, 0, size)
}

/** What it holds from `start` to `end`, or to where it ends. */
export async function readBytes(fd: number, start: number, end: number): Promise<Buffer> {
  const bytes = Buffer.allocUnsafeSlow(Math.max(0, end - start))
  let at = 0
  while (at < bytes.length) {
    const left = bytes.length - at
    const count = isQuick(left)
      ? readSync(fd, bytes, at, left, start + at)
      : (await readSlowly(fd, bytes, at, Math.min(left, mostAtOnce), start + at)).bytesRead
    if (count === 0) break
    at += count
  }
  return bytes.subarray(0, at)
}

/** Writes all of it to a new file. */
export async function writeBytes(fd: number, data: string | Uint8Array): Promise<void> {
  const bytes = typeof data === 'string' ? Buffer.from(data) : data
  for (let at = 0; at < bytes.length; ) {
    const left = bytes.length - at
    at += isQuick(left)
      ? writeSync(fd, bytes, at)
      : (await writeSlowly(fd, bytes, at, Math.min(left, mostAtOnce))).bytesWritten
  }
}
