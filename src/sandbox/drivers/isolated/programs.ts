import { constants } from 'node:fs'
import { join } from 'node:path'
import { isAccessible } from '../../../base/access.ts'
import { machineOf } from './seccomp.ts'

/** Where programs of the system are looked for; the PATH of this process may name folders that others can write to. */
export const systemPath = ['/usr/local/sbin', '/usr/local/bin', '/usr/sbin', '/usr/bin', '/sbin', '/bin']

/** The programs that make the walls, by their whole paths. Root needs more of them, to stop being root. */
export interface Programs {
  readonly bwrap: string
  readonly prlimit: string
  readonly root?: { readonly unshare: string; readonly setpriv: string; readonly perl: string }
}

const packages: Readonly<Record<string, string>> = {
  bwrap: 'bubblewrap',
  prlimit: 'util-linux',
  unshare: 'util-linux',
  setpriv: 'util-linux',
  perl: 'perl-base',
}

/** Or a sentence about what is missing, with the command that mends it. */
export function findPrograms(path: readonly string[] = systemPath): Programs | string {
  if (process.platform !== 'linux')
    return `isolated needs Linux, and this is ${process.platform}; use docker.`
  if (machineOf(process.arch) === undefined) {
    return `isolated has no filter for the system calls of ${process.arch}, only of arm64 and x64; use docker.`
  }
  const names = ['bwrap', 'prlimit', ...(isRoot() ? ['unshare', 'setpriv', 'perl'] : [])]
  const found = new Map(names.map(name => [name, findProgram(name, path)]))
  const missing = names.filter(name => found.get(name) === undefined)
  if (missing.length > 0) {
    const install = [...new Set(missing.map(name => packages[name]))].join(' ')
    return `isolated needs ${missing.join(' and ')}, not found in ${path.join(':')}. Install with: apt-get install ${install}`
  }
  const at = (name: string) => found.get(name) as string
  return {
    bwrap: at('bwrap'),
    prlimit: at('prlimit'),
    ...(isRoot() && { root: { unshare: at('unshare'), setpriv: at('setpriv'), perl: at('perl') } }),
  }
}

export function isRoot(): boolean {
  return process.getuid?.() === 0
}

function findProgram(name: string, path: readonly string[]): string | undefined {
  return path.map(folder => join(folder, name)).find(file => isAccessible(file, constants.X_OK))
}
