import { closeSync, constants, openSync, readdirSync, readFileSync, readlinkSync, unlinkSync } from 'node:fs'
import { tmpdir, uptime } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { platformOf } from '../../../base/platform.ts'
import type { ProcessWindow } from './process-window.ts'

/**
 * Set in the environment of every command, and inherited by whatever it starts: the command's mark, behind that of the sandbox which this
 * process may be running in itself. A process that has left its group, its session and its parent still carries it.
 */
export const markName = 'OPENRATH_SANDBOX'

/** The number under which commands inherit a file of that name, since a process may start without its environment: `env -i`. */
const markFile = 3

/** Opens a file that has no name any more but the mark, empty and read-only, to be inherited. Undefined where none can be made. */
export function openMark(mark: string): (Disposable & { readonly fd: number }) | undefined {
  const path = join(tmpdir(), `openrath-${mark}`)
  try {
    const fd = openSync(path, constants.O_CREAT | constants.O_EXCL | constants.O_RDONLY, 0o600)
    unlinkSync(path)
    return { fd, [Symbol.dispose]: () => closeSync(fd) }
  } catch {
    return undefined
  }
}

/** Whose processes are meant. */
export interface Tree {
  /** Unique: `<this process>.<sandbox>.<command>;`, or the beginning of it. */
  readonly mark: string
  /** The command's first process, which leads a group and a session of its own. Only while its number cannot belong to another. */
  readonly leader?: number | undefined
  /** Opened before the first of them started. */
  readonly since: ProcessWindow
}

/** How long killed processes may take to be gone; one that hangs in the kernel is not waited for any longer. */
const patience = 2000

/** Kills a tree and waits until nothing of it is left. A process that forks faster than it is found is found in the next round. */
export async function endTree(tree: Tree): Promise<void> {
  killTree(tree)
  await endFound(() => findTree(tree))
}

/** The same for whatever is found. */
export async function endFound(find: () => readonly number[]): Promise<void> {
  const start = performance.now()
  for (let found = find(); found.length > 0 && performance.now() - start < patience; found = find()) {
    for (const pid of found) kill(pid)
    await pause(2)
  }
}

/** One round, without waiting: all that can be done when this process exits. */
export function killTree(tree: Tree): void {
  if (tree.leader !== undefined) kill(-tree.leader)
  for (const pid of findTree(tree)) kill(pid)
}

/** True where a process can be found that has left its group: where there is a Linux `/proc`. Elsewhere only groups are killed. */
export const findsAll = platformOf().proc

/** The living processes of a tree: those that carry its mark or hold it open, those of the leader's session, and what descends from either. */
function findTree({ mark, leader, since }: Tree): number[] {
  if (!findsAll) return []
  const marked = Buffer.from(mark)
  const found = new Set<number>()
  const others: Stat[] = []
  const numbers = readdirSync('/proc').map(Number).filter(Number.isInteger)
  for (const pid of numbers.filter(since.filter())) {
    if (pid === process.pid) continue
    if (environmentOf(pid)?.includes(marked) || inheritedBy(pid).includes(mark)) found.add(pid)
    else if (leader !== undefined) {
      const stat = statOf(pid)
      if (stat === undefined) continue
      if (stat.session === leader) found.add(pid)
      else others.push(stat)
    }
  }
  for (let before = -1; before !== found.size; ) {
    before = found.size
    for (const { pid, parent } of others) if (found.has(parent) || parent === leader) found.add(pid)
  }
  return [...found]
}

/** Empty for a process that has ended, undefined for one that is not ours to read. */
export function environmentOf(pid: number | 'self'): Buffer | undefined {
  try {
    return readFileSync(`/proc/${pid}/environ`)
  } catch {
    return undefined
  }
}

export function inheritedBy(pid: number | 'self'): string {
  try {
    return readlinkSync(`/proc/${pid}/fd/${markFile}`)
  } catch {
    return ''
  }
}

/** Milliseconds since it started. */
export function ageOf(pid: number): number | undefined {
  const stat = statOf(pid)
  return stat && uptime() * 1000 - stat.start * 10
}

interface Stat {
  readonly pid: number
  readonly parent: number
  readonly session: number
  /** Hundredths of a second after the machine. */
  readonly start: number
}

/** Undefined for a process that is gone, or that has ended and waits to be collected. */
function statOf(pid: number): Stat | undefined {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'latin1')
    // The name in brackets may hold anything, brackets too.
    const fields = text.slice(text.lastIndexOf(')') + 2).split(' ')
    if (fields[0] === 'Z') return undefined
    return { pid, parent: Number(fields[1]), session: Number(fields[3]), start: Number(fields[19]) }
  } catch {
    return undefined
  }
}

export function kill(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL')
  } catch {
    // It ended by itself, or belongs to another user by now.
  }
}
