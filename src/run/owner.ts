import { readFileSync, readlinkSync } from 'node:fs'
import { hostname } from 'node:os'
import { newId } from '../base/ids.ts'
import { hasEnded } from '../base/process.ts'

let self: string | undefined
let made = 0

/** A name for one who drives a run: the machine, the process, and which of its drivers. No two are the same. */
export function newOwner(): string {
  self ??= `${machine()}/${process.pid}/${newId().slice(-8)}`
  made++
  return `${self}.${made}`
}

/**
 * Whether an owner is certainly gone: a process of this machine that is no more. Another machine, or a system that cannot tell its process
 * ids from those of a container beside it, has to wait until the lease ends.
 */
export function isGone(owner: string): boolean {
  const [host, boot, pid] = owner.split('/')
  if (boot === '' || `${host}/${boot}` !== machine()) return false
  // The number may be taken: by that process, by this one, or by another that came later.
  return Number(pid) === process.pid ? !owner.startsWith(`${self}.`) : hasEnded(Number(pid))
}

/** The number of an owner's process. */
export function processOf(owner: string): number {
  return Number(owner.split('/')[2])
}

/** The host, and what tells its process ids from those of other hosts of this name; empty where nothing does. */
function machine(): string {
  return `${hostname().replaceAll('/', '-')}/${boot()}`
}

function boot(): string {
  try {
    const id = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim().slice(0, 8)
    return `${id}${readlinkSync('/proc/self/ns/pid').replace(/\D/g, '')}`
  } catch {
    return ''
  }
}
