import { readFileSync, readlinkSync } from 'node:fs'
import { hostname } from 'node:os'
import { sha256 } from './digest.ts'
import { platformOf } from './platform.ts'
import { systemOutput } from './programs.ts'

/** A process, told apart from another that later has its number. */
export interface ProcessName {
  readonly pid: number
  /** When it started, in whatever form the system says it. */
  readonly start: string
  /** The run of the machine and the namespace that the number counts in; empty where the system has no such thing. */
  readonly boot: string
  readonly namespace: string
  readonly machine: string
}

/** `unknown`: it ran on another machine, in another container or before a restart of this one, and cannot be seen from here. */
export type ProcessState = 'running' | 'gone' | 'unknown'

export function thisProcess(): ProcessName {
  return { pid: process.pid, start: startOf(process.pid) ?? '', ...surroundings() }
}

let own: string | undefined

/** This process in a few letters, for the name of a folder, a container, a run's owner or a command: `<pid>-<16 hex digits>`. */
export function thisMark(): string {
  own ??= markOf(thisProcess())
  return own
}

/** The part of a regular expression that finds a mark. */
export const markPattern = '\\d+-[0-9a-f]{16}'

export function markOf({ pid, start, ...place }: ProcessName): string {
  return `${pid}-${digest(placeOf(place))}${digest(start)}`
}

/**
 * Whether a process is gone: the one answer for runs, branches, containers and commands that somebody left. It takes a name, a mark, or, from
 * who knows no more, the number alone, which may by now be another's.
 */
export function stateOf(process: ProcessName | string | number): ProcessState {
  if (typeof process === 'number') return startOf(process) === undefined ? 'gone' : 'running'
  const here = surroundings()
  if (typeof process === 'string') {
    const [, pid, place, start] = /^(\d+)-([0-9a-f]{8})([0-9a-f]{8})$/.exec(process) ?? []
    if (place === undefined || place !== digest(placeOf(here))) return 'unknown'
    const found = startOf(Number(pid))
    return found !== undefined && digest(found) === start ? 'running' : 'gone'
  }
  if (process.machine !== here.machine) return 'unknown'
  if (process.boot !== here.boot) return 'gone'
  if (process.namespace !== here.namespace) return 'unknown'
  return startOf(process.pid) === process.start ? 'running' : 'gone'
}

function placeOf({ boot, namespace, machine }: Omit<ProcessName, 'pid' | 'start'>) {
  return JSON.stringify({ boot, namespace, machine })
}

function digest(text: string): string {
  return sha256(text).slice(0, 8)
}

function surroundings(): Omit<ProcessName, 'pid' | 'start'> {
  return {
    boot: textOf(() => readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()),
    namespace: textOf(() => readlinkSync('/proc/self/ns/pid')),
    machine: hostname(),
  }
}

function textOf(read: () => string): string {
  try {
    return read()
  } catch {
    return ''
  }
}

/** When a process started, which tells it from a later one of its number. Undefined for one that is gone, or that has ended and waits for its parent to take notice, which in a container may be never. */
export function startOf(pid: number): string | undefined {
  if (!platformOf().proc) return systemOutput('ps', ['-o', 'lstart=', '-p', String(pid)])?.trim() || undefined
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1')
    // The name in brackets may hold anything, brackets too.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    return fields[0] === 'Z' ? undefined : fields[19]
  } catch {
    return undefined
  }
}
