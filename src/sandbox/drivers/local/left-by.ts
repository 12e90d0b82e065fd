import { readdirSync, readlinkSync, realpathSync } from 'node:fs'
import { markPattern, stateOf } from '../../../base/process.ts'
import { ageOf, endFound, environmentOf, findsAll, inheritedBy, markName } from './processes.ts'

/**
 * Ends the commands of a process of this machine that was killed before it could, and waits until they are gone: a command that is left
 * would go on changing files that somebody else works on by now. `process` is its mark.
 */
export async function endLeftBy(process: string): Promise<void> {
  if (findsAll) await endFound(() => leftBy(process))
}

/**
 * Commands that processes of this machine left which are no more, and that run for at least so many milliseconds; with a folder, only those that
 * work in it or below.
 */
export function leftCommands(olderThan: number, folder?: string): readonly number[] {
  if (!findsAll) return []
  const old = leftBy('any').filter(pid => (ageOf(pid) ?? -1) >= olderThan)
  return folder === undefined ? old : old.filter(pid => isIn(folder, pid))
}

function isIn(folder: string, pid: number): boolean {
  try {
    return `${readlinkSync(`/proc/${pid}/cwd`)}/`.startsWith(`${realpathSync.native(folder)}/`)
  } catch {
    return false
  }
}

/** Those of one process, or of any that is no more. */
function leftBy(process: string): number[] {
  const isLeft = (owner: string) => (process === 'any' ? stateOf(owner) === 'gone' : owner === process)
  // Whoever asks may run in such a command itself.
  const mine = ownersOf('self')
  return readdirSync('/proc')
    .map(Number)
    .filter(Number.isInteger)
    .filter(pid => ownersOf(pid).some(owner => isLeft(owner) && !mine.includes(owner)))
}

/** The processes whose commands it belongs to, by the marks that it carries. */
function ownersOf(pid: number | 'self'): string[] {
  const [, inEnvironment = ''] = carried.exec(environmentOf(pid)?.toString('latin1') ?? '') ?? []
  const inName = named.exec(inheritedBy(pid))?.[1] ?? ''
  return [...`${inEnvironment};${inName}`.matchAll(owners)].map(([, owner]) => owner as string)
}

const carried = new RegExp(`(?:^|\\0)${markName}=([^\\0]*)`)
const named = new RegExp(`/openrath-(${markPattern}\\.[^/]*)$`)
const owners = new RegExp(`(?:^|;)(${markPattern})\\.`, 'g')
