import { readdirSync, readlinkSync } from 'node:fs'
import { endFound, environmentOf, findsAll, inheritedBy, markName } from './processes.ts'

/**
 * Ends the commands of a process of this machine that was killed before it could, and waits until they are gone: a command that is left
 * would go on changing files that somebody else works on by now. The number must be nobody's any more.
 */
export async function endLeftBy(process: number): Promise<void> {
  if (findsAll) await endFound(() => leftBy(process))
}

function leftBy(process: number): number[] {
  const inEnvironment = new RegExp(`(^|\\0)${markName}=([^\\0]*;)?${process}\\.`)
  const inName = `/openrath-${process}.`
  const own = namespaceOf('self')
  return readdirSync('/proc')
    .map(Number)
    .filter(pid => {
      if (!Number.isInteger(pid)) return false
      const isMarked =
        inEnvironment.test(environmentOf(pid)?.toString('latin1') ?? '') || inheritedBy(pid).includes(inName)
      // In a container beside or below, the number is that of another process.
      return isMarked && namespaceOf(pid) === own
    })
}

function namespaceOf(pid: number | 'self'): string | undefined {
  try {
    return readlinkSync(`/proc/${pid}/ns/pid`)
  } catch {
    return undefined
  }
}
