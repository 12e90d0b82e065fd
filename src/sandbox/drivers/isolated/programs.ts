import { type Platform, platformOf } from '../../../base/platform.ts'
import { findProgram } from '../../../base/programs.ts'
import { machineOf } from './seccomp.ts'

/** Where commands find programs; the walls are made of programs from these folders too. */
export const systemPath = platformOf('linux').programFolders

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
export function findPrograms(
  path: readonly string[] = systemPath,
  platform: Platform = platformOf(),
): Programs | string {
  if (platform.name !== 'linux') return `isolated needs Linux, and this is ${platform.label}; use docker.`
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
