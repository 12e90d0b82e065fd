import { realpathSync } from 'node:fs'
import { readFile, readlink } from 'node:fs/promises'
import { hostname } from 'node:os'
import { sha256 } from '../../../base/digest.ts'
import type { Json } from '../../../base/json.ts'
import { platformOf } from '../../../base/platform.ts'
import { runSystem } from '../../../base/programs.ts'

/** A process, told apart from another that later has its number. */
export interface Owner {
  readonly pid: number
  /** When it started, in whatever form the system says it. */
  readonly start: string
  /** The run of the machine and the namespace that the number counts in; empty where the system has no such thing. */
  readonly boot: string
  readonly namespace: string
  readonly machine: string
  /** The folder that it was started in, as `projectOf` tells it; missing for what older versions left. */
  readonly project?: string
}

/** Tells the folder that programs are started in from another, in a few letters: whose leftovers something is. */
export function projectOf(folder: string): string {
  try {
    return sha256(realpathSync.native(folder)).slice(0, 8)
  } catch {
    return sha256(folder).slice(0, 8)
  }
}

/** Leftovers of one project only, and only those that nobody touched in the last milliseconds. */
export interface LeftBy {
  readonly project?: string | undefined
  readonly olderThan?: number
}

export async function thisProcess(): Promise<Owner> {
  const start = (await startOf(process.pid)) ?? ''
  return { pid: process.pid, start, ...(await surroundings()), project: projectOf(process.cwd()) }
}

/** `unknown` when it ran on another machine or in another container, whose processes cannot be seen from here. */
export async function stateOf(owner: Owner): Promise<'running' | 'gone' | 'unknown'> {
  const here = await surroundings()
  if (owner.machine !== here.machine) return 'unknown'
  if (owner.boot !== here.boot) return 'gone'
  if (owner.namespace !== here.namespace) return 'unknown'
  return (await startOf(owner.pid)) === owner.start ? 'running' : 'gone'
}

/** The same in a few letters, for the name of a folder that has no place for more. */
export async function thisMark(): Promise<string> {
  const { pid, start, project: _, ...place } = await thisProcess()
  return `${pid}-${digest(place)}${digest(start)}`
}

/** `unknown` also when the machine was started anew since. */
export async function stateOfMark(mark: string): Promise<'running' | 'gone' | 'unknown'> {
  const [, pid, place, start] = /^(\d+)-([0-9a-f]{8})([0-9a-f]{8})$/.exec(mark) ?? []
  if (place !== digest(await surroundings())) return 'unknown'
  const found = await startOf(Number(pid))
  return found !== undefined && digest(found) === start ? 'running' : 'gone'
}

function digest(value: Json): string {
  return sha256(JSON.stringify(value)).slice(0, 8)
}

export function parseOwner(text: string): Owner | undefined {
  try {
    const { pid, start, boot, namespace, machine, project } = JSON.parse(text) as Record<keyof Owner, unknown>
    const texts = [start, boot, namespace, machine]
    if (!Number.isInteger(pid) || texts.some(value => typeof value !== 'string')) return undefined
    const of = typeof project === 'string' ? { project } : {}
    return { pid, start, boot, namespace, machine, ...of } as Owner
  } catch {
    return undefined
  }
}

async function surroundings(): Promise<Pick<Owner, 'boot' | 'namespace' | 'machine'>> {
  const boot = await readFile('/proc/sys/kernel/random/boot_id', 'utf8').catch(() => '')
  const namespace = await readlink('/proc/self/ns/pid').catch(() => '')
  return { boot: boot.trim(), namespace, machine: hostname() }
}

async function startOf(pid: number): Promise<string | undefined> {
  if (!platformOf().proc) {
    return runSystem('ps', ['-o', 'lstart=', '-p', String(pid)]).then(
      text => text.trim(),
      () => undefined,
    )
  }
  try {
    const stat = await readFile(`/proc/${pid}/stat`, 'latin1')
    // The name in brackets may hold anything, brackets too.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    // One that has ended and waits to be collected owns nothing any more.
    return fields[0] === 'Z' ? undefined : fields[19]
  } catch {
    return undefined
  }
}
