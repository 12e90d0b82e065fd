import { type ChildProcessByStdio, spawn } from 'node:child_process'
import { mkdirSync, readdirSync, readFileSync, readlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import type { Readable } from 'node:stream'
import { placesIn } from './expedition.ts'

/** A folder for a run of its own: the project it works on, and everything that it keeps. */
export function makePlace(root: string, name: string) {
  const folder = join(root, name)
  const places = placesIn(folder)
  mkdirSync(places.project, { recursive: true })
  writeFileSync(join(places.project, 'log.txt'), 'first\nsecond\nthird\n')
  writeFileSync(places.counter, '')
  return { folder, ...places }
}
export type Place = ReturnType<typeof makePlace>

/** When to kill: so many lines after it began, and so many milliseconds after that line. */
export interface Kill {
  readonly lines: number
  readonly delayMs: number
}

export interface Ended {
  /** The last line, if it came to one: `end STATE`, or `error JSON`. */
  readonly end: string | undefined
  readonly lines: readonly string[]
  readonly wasKilled: boolean
  readonly pid: number
}

/** A process that works on a run, until it ends or is killed; every line is a point in or between effects. */
export async function work({ folder }: Place, command: readonly string[], kill?: Kill): Promise<Ended> {
  const program = join(import.meta.dirname, 'worker.ts')
  const child: ChildProcessByStdio<null, Readable, null> = spawn(
    process.execPath,
    ['--disable-warning=ExperimentalWarning', program, folder, ...command],
    { stdio: ['ignore', 'pipe', 'inherit'] },
  )
  const closed = new Promise<NodeJS.Signals | null>(resolve =>
    child.on('close', (_code, signal) => resolve(signal)),
  )
  const lines: string[] = []
  let timer: NodeJS.Timeout | undefined
  for await (const line of createInterface({ input: child.stdout })) {
    lines.push(line)
    if (lines.length !== kill?.lines) continue
    if (kill.delayMs === 0) child.kill('SIGKILL')
    else timer = setTimeout(() => child.kill('SIGKILL'), kill.delayMs)
  }
  const signal = await closed
  clearTimeout(timer)
  const end = lines.find(line => /^(end|error) /.test(line))
  return { lines, end, wasKilled: signal === 'SIGKILL', pid: child.pid as number }
}

/** What commands of these processes are still running. */
export function leftRunning(pids: readonly number[]): string[] {
  return readdirSync('/proc').filter(pid => {
    if (!/^\d+$/.test(pid)) return false
    try {
      const environment = readFileSync(`/proc/${pid}/environ`, 'latin1')
      const isAlive = readlinkSync(`/proc/${pid}/exe`) !== ''
      return isAlive && pids.some(left => environment.includes(`OPENRATH_SANDBOX=${left}.`))
    } catch {
      return false
    }
  })
}

/** Every file below a folder, with what is in it. */
export function filesIn(folder: string): Record<string, string> {
  const paths = readdirSync(folder, { recursive: true, withFileTypes: true })
  const files = paths.filter(entry => entry.isFile()).map(entry => join(entry.parentPath, entry.name))
  return Object.fromEntries(
    files.sort().map(path => [path.slice(folder.length + 1), readFileSync(path, 'utf8')]),
  )
}

/** The same numbers from 0 to 1 for the same seed (mulberry32). */
export function seeded(seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}
