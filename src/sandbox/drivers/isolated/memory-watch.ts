import { readdirSync, readFileSync, statfsSync } from 'node:fs'
import type { Launched } from '../../host/command.ts'

/** Milliseconds between looks, and how much longer than a look the pause is at least: looking must not become the work. */
const pause = 50
const share = 20
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
      if (this.#running.size > 0) this.#next(Math.max(pause, share * (performance.now() - start)))
    }, after).unref()
  }

  #look(): void {
    const isShort = availableMemory() < this.#floor
    let used = this.#used(residentIn)
    if (used.total <= this.#limit && !isShort) return
    // What processes share was counted for each of them.
    used = this.#used(ownedIn)
    if (used.largest === undefined || (used.total <= this.#limit && !isShort)) return
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
  for (const status of ofProcesses(inner, 'status')) bytes += kilobytes(status, /^Vm(?:RSS|Swap):\s+(\d+)/gm)
  return bytes
}

/** Shared memory counts for each process by its part, and that of files in the folder for shared memory once. */
function ownedIn(inner: number): number {
  let bytes = inSharedFolder(inner)
  for (const rollup of ofProcesses(inner, 'smaps_rollup'))
    bytes += kilobytes(rollup, /^(?:Pss_Anon|Pss_Shmem|SwapPss):\s+(\d+)/gm)
  for (const maps of ofProcesses(inner, 'smaps'))
    bytes -= kilobytes(maps, /^[\da-f]+-[\da-f]+ .* \/dev\/shm\/.*\n(?:\w+:.*\n)*?Pss:\s+(\d+)/gm)
  return bytes
}

/** A file of each process inside, by the sandbox's own list of them. One that has ended, or has no such file, is left out. */
function* ofProcesses(inner: number, file: string): Generator<string> {
  const list = `/proc/${inner}/root/proc`
  for (const name of orNothing(() => readdirSync(list)) ?? []) {
    if (!/^\d+$/.test(name)) continue
    const text = orNothing(() => readFileSync(`${list}/${name}/${file}`, 'latin1'))
    if (text !== undefined) yield text
  }
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
