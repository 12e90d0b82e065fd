import { closeSync, openSync, readFileSync, writeSync } from 'node:fs'
import { isMainThread } from 'node:worker_threads'
import { platformOf } from './platform.ts'

let isDone = false

/**
 * Blanks the values in the block of memory that this process was started with, which every program of the same user reads as `/proc/PID/environ`.
 * `process.env` keeps them: setting or deleting a variable there makes a copy and leaves the block as it was, so the block itself is written to.
 * Done once, on Linux. The memory of this process, and the blocks of the programs that started it, still hold them.
 */
export function hideEnvironment(): void {
  // The variables of a worker are a copy, and those of the process would be lost.
  if (isDone || !platformOf().proc || !isMainThread) return
  isDone = true
  try {
    blank(readFileSync('/proc/self/environ'), blockAt())
  } catch {
    // A system that does not let a process write to its own memory leaves it as it is, as the page on security says.
  }
}

/** Read by the loader, the C library or Node itself, some of which keep pointers into the block. */
const needed =
  /^(PATH|HOME|USER|LOGNAME|SHELL|TERM|LANG|LANGUAGE|TZ|TMPDIR|PWD|(LC|LD|NODE|UV|ICU|SSL|OPENSSL|MALLOC|GLIBC|GCONV|LOCPATH|NLSPATH|RES)_?.*)$/

function blank(block: Buffer, { start, length }: { readonly start: number; readonly length: number }): void {
  if (block.length !== length) return
  const memory = openSync('/proc/self/mem', 'r+')
  try {
    for (let at = 0; at < block.length; ) {
      const found = block.indexOf(0, at)
      const end = found < 0 ? block.length : found
      const entry = block.subarray(at, end)
      const from = at + entry.indexOf('=') + 1
      const name = block.toString('latin1', at, from - 1)
      if (from > at + 1 && !needed.test(name) && moved(name)) {
        writeSync(memory, Buffer.alloc(end - from, '*'), 0, end - from, start + from)
      }
      at = end + 1
    }
  } finally {
    closeSync(memory)
  }
}

/** Has the system keep a variable elsewhere. False for one that would not come back to the letter. */
function moved(name: string): boolean {
  const value = process.env[name]
  if (value === undefined) return true
  if (value.includes('\ufffd')) return false
  process.env[name] = value
  return process.env[name] === value
}

function blockAt(): { readonly start: number; readonly length: number } {
  const stat = readFileSync('/proc/self/stat', 'latin1')
  // The name of the program may hold spaces and brackets; the fields behind it are numbers, from the third on.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  const [start, end] = [Number(fields[50 - 3]), Number(fields[51 - 3])]
  return { start, length: end - start }
}
