import type { StdioOptions } from 'node:child_process'
import { closeSync, openSync, readdirSync, readFileSync } from 'node:fs'

type Stdio = Exclude<StdioOptions, string | undefined>

/**
 * Puts an empty file in the place of every open file of this process that a child would inherit besides those it is given. Node opens none
 * such and closes low numbers at its start, but whoever started it may have left others: a folder among them would be a way out. To be disposed of once the child is started.
 */
export function withoutInherited(stdio: Stdio): Disposable & { readonly stdio: Stdio } {
  const left = inheritable().filter(fd => fd >= stdio.length)
  if (left.length === 0) return { stdio, [Symbol.dispose]() {} }
  const empty = openSync('/dev/null', 'r')
  const whole = [...stdio]
  for (let fd = stdio.length; fd <= Math.max(...left); fd++) whole.push(left.includes(fd) ? empty : 'ignore')
  return { stdio: whole, [Symbol.dispose]: () => closeSync(empty) }
}

function inheritable(): number[] {
  return readdirSync('/proc/self/fdinfo').map(Number).filter(isInheritable)
}

/** The bit is O_CLOEXEC. */
function isInheritable(fd: number): boolean {
  try {
    const flags = /^flags:\s+(\d+)/m.exec(readFileSync(`/proc/self/fdinfo/${fd}`, 'latin1'))?.[1]
    return (Number.parseInt(flags ?? '0', 8) & 0o2000000) === 0
  } catch {
    // It was the one that listed them.
    return false
  }
}
