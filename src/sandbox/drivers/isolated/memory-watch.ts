import { readdirSync, readFileSync, statfsSync } from 'node:fs'
import type { Launched } from '../../host/command.ts'

/** Milliseconds between looks at least and at most. A look that takes long, on a busy machine or at many processes, is followed by a longer pause. */
const pause = 50
const longestPause = 250
/** Bytes of the machine's memory that stay available when a command is ended, and half of what is where that is less. */
const available = 256 * 2 ** 20

/** A command whose process number 1 is known once it has one. */
export interface WatchedCommand extends Launched {
  inner(): number | undefined
}

/**
 * Ends the largest command of a sandbox when all of them together use more memory than they may, where no cgroup counts it: limits of a process know
 * nothing of memory that processes share, nor of the other processes. What is taken between two looks is not prevented.
 */
export class MemoryWatch {
  readonly #limit: number
  readonly #floor: number
  readonly #running = new Map<WatchedCommand, (why: string) => void>()
  #timer: NodeJS.Timeout | undefined

  constructor(limit: number) {
    this.#limit = limit
    const free = availableMemory()
    this.#floor = free > available ? available : free / 2
  }

  watch(command: WatchedCommand): Launched {
    let ended = ''
    this.#running.set(command, why => {
      ended = why
      command.kill()
    })
    const stop = () => this.#forget(command)
    command.child.once('exit', stop).once('error', stop)
    if (this.#timer === undefined) this.#next(pause)
    return {
      ...command,
      failure: (exitCode, stderr) => (ended ? undefined : command.failure?.(exitCode, stderr)),
      lastWords: () => ended || (command.lastWords?.() ?? ''),
    }
  }

  #forget(command: WatchedCommand): void {
    this.#running.delete(command)
    if (this.#running.size > 0) return
    clearTimeout(this.#timer)
    this.#timer = undefined
  }

  #next(after: number): void {
    this.#timer = setTimeout(() => {
      const start = performance.now()
      this.#look()
      if (this.#running.size > 0)
        this.#next(Math.min(longestPause, Math.max(pause, performance.now() - start)))
    }, after).unref()
  }

  #look(): void {
    const isShort = availableMemory() < this.#floor
    let used = this.#used(residentIn)
    if (used.total <= this.#limit && !isShort) return
    // Memory that processes share was counted once for each of them. Processes that end while their shares are read leave theirs to the next
    // one that is read, so a sum above the limit counts only when a second one agrees.
    for (let look = 0; look < 2; look++) {
      used = this.#used(ownedIn)
      if (used.total <= this.#limit && !isShort) return
    }
    if (used.largest === undefined) return
    const limit = Math.round(this.#limit / 2 ** 20)
    this.#running.get(used.largest)?.(
      used.total > this.#limit
        ? `The command was ended: the sandbox used more than ${limit} MB of memory.\n`
        : 'The command was ended: the memory of the machine was almost used up.\n',
    )
    // Killed, it is not counted again while it goes.
    this.#running.delete(used.largest)
  }

  #used(count: (inner: number) => number): { readonly total: number; readonly largest?: WatchedCommand } {
    let total = 0
    let most = -1
    let largest: WatchedCommand | undefined
    for (const command of this.#running.keys()) {
      const inner = command.inner()
      const bytes = inner === undefined ? 0 : count(inner)
      total += bytes
      if (bytes > most) [most, largest] = [bytes, command]
    }
    return { total, ...(largest && { largest }) }
  }
}

/** At least what a sandbox uses, with little work: memory that is shared counts for each process. */
function residentIn(inner: number): number {
  let bytes = inSharedFolder(inner)
  for (const folder of processesIn(inner)) bytes += kilobytes(read(`${folder}/status`) ?? '', resident)
  return bytes
}

/** Shared memory counts for each process by its part, and that of files in the folder for shared memory once. */
function ownedIn(inner: number): number {
  const inFolder = inSharedFolder(inner)
  let bytes = inFolder
  for (const folder of processesIn(inner)) {
    // The mapped files first: a process that ends between the two reads then counts as nothing, not twice.
    const maps = inFolder === 0 ? '' : (read(`${folder}/smaps`) ?? '')
    const rollup = read(`${folder}/smaps_rollup`)
    // A process that does not let itself be looked at counts with all that it holds.
    if (rollup === undefined) bytes += kilobytes(read(`${folder}/status`) ?? '', resident)
    else bytes += kilobytes(rollup, /^(?:Pss_Anon|Pss_Shmem|SwapPss):\s+(\d+)/gm)
    bytes -= kilobytes(maps, /^[\da-f]+-[\da-f]+ .* \/dev\/shm\/.*\n(?:\w+:.*\n)*?Pss:\s+(\d+)/gm)
  }
  return bytes
}

const resident = /^Vm(?:RSS|Swap):\s+(\d+)/gm

/** By the sandbox's own list of them. */
function processesIn(inner: number): string[] {
  const list = `/proc/${inner}/root/proc`
  const names = orNothing(() => readdirSync(list)) ?? []
  return names.filter(name => /^\d+$/.test(name)).map(name => `${list}/${name}`)
}

/** Undefined for a process that has ended. */
function read(path: string): string | undefined {
  return orNothing(() => readFileSync(path, 'latin1'))
}

function inSharedFolder(inner: number): number {
  const found = orNothing(() => statfsSync(`/proc/${inner}/root/dev/shm`))
  return found === undefined ? 0 : (found.blocks - found.bfree) * found.bsize
}

function availableMemory(): number {
  const text = orNothing(() => readFileSync('/proc/meminfo', 'latin1')) ?? ''
  return kilobytes(text, /^MemAvailable:\s+(\d+)/gm) || Number.POSITIVE_INFINITY
}

function kilobytes(text: string, lines: RegExp): number {
  let sum = 0
  for (const [, number] of text.matchAll(lines)) sum += Number(number)
  return sum * 1024
}

function orNothing<T>(look: () => T): T | undefined {
  try {
    return look()
  } catch {
    return undefined
  }
}
