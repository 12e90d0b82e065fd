import { readFileSync } from 'node:fs'

/** Whether a process of this machine is no more. One of somebody else's is there; one that was killed and that nobody took notice of is not. */
export function hasEnded(pid: number): boolean {
  try {
    process.kill(pid, 0)
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ESRCH'
  }
  return isZombie(pid)
}

/** Its number is kept until whoever started it takes notice, which in a container may be never. Only Linux tells. */
function isZombie(pid: number): boolean {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    return stat.slice(stat.lastIndexOf(')') + 2).startsWith('Z')
  } catch {
    return false
  }
}
