import { realpathSync } from 'node:fs'
import { sha256 } from '../../../base/digest.ts'
import { type ProcessName, thisProcess } from '../../../base/process.ts'

/** The process that something belongs to. */
export interface Owner extends ProcessName {
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

export function thisOwner(): Owner {
  return { ...thisProcess(), project: projectOf(process.cwd()) }
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
