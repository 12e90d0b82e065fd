import { existsSync, readdirSync, readlinkSync, realpathSync } from 'node:fs'
import { ageOf, endFound, environmentOf, findsAll, inheritedBy, markName } from './processes.ts'

/**
 * Ends the commands of a process of this machine that was killed before it could, and waits until they are gone: a command that is left
 * would go on changing files that somebody else works on by now. The number must be nobody's any more.
 */
export async function endLeftBy(process: number): Promise<void> {
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
function leftBy(process: number | 'any'): number[] {
  const own = namespaceOf('self')
  const isLeft = (owner: number) => (process === 'any' ? !existsSync(`/proc/${owner}`) : owner === process)
  // Whoever asks may run in such a command itself.
  const mine = ownersOf('self')
  return readdirSync('/proc')
    .map(Number)
    .filter(Number.isInteger)
    .filter(pid => ownersOf(pid).some(owner => isLeft(owner) && !mine.includes(owner)))
    .filter(pid => namespaceOf(pid) === own) // In a container beside or below, the number is that of another process.
}

/** The processes whose commands it belongs to, by the marks that it carries. */
function ownersOf(pid: number | 'self'): number[] {
  const [, inEnvironment = ''] = carried.exec(environmentOf(pid)?.toString('latin1') ?? '') ?? []
  const inName = /\/openrath-(\d+\.[^/]*)$/.exec(inheritedBy(pid))?.[1] ?? ''
  return [...`${inEnvironment};${inName}`.matchAll(/(?:^|;)(\d+)\./g)].map(([, owner]) => Number(owner))
}

const carried = new RegExp(`(?:^|\\0)${markName}=([^\\0]*)`)

function namespaceOf(pid: number | 'self'): string | undefined {
  try {
    return readlinkSync(`/proc/${pid}/ns/pid`)
  } catch {
    return undefined
  }
}
