import { existsSync, lstatSync, readlinkSync } from 'node:fs'
import type { GuardMount } from '../../host/guard.ts'

/** What one command of a sandbox sees and may do, for bubblewrap. */
export interface Walls {
  /** Where each thing lies that is mounted, on this machine or where it was staged. */
  readonly workspace: string
  readonly temporary: string
  readonly etc: string
  /** Files of this machine were mounted there already, and it is seen as it is. */
  readonly isEtcWhole: boolean
  readonly node: string
  readonly proxy: string | undefined
  readonly read: readonly { readonly source: string; readonly at: string }[]
  /** Where the workspace is seen. */
  readonly inside: string
  /** An empty folder of the sandbox's own, seen in place of the record. */
  readonly record: { readonly source: string; readonly at: string }
  /** Parts of the workspace that are mounted over themselves, outermost first: see `Guard`. */
  readonly guarded: readonly GuardMount[]
  readonly cwd: string
  readonly env: Readonly<Record<string, string>>
  /** Bytes of the folder for shared memory. */
  readonly sharedMemory: number
}

/** The user that commands are in their own eyes. */
const insideUser = 1000
export const insideHome = '/tmp/home'

/** Files of /etc that programs need and that hold nothing of this machine's users. The rest are stubs. */
export const etcOfHost: readonly string[] = [
  'ssl/certs',
  'ssl/openssl.cnf',
  'ca-certificates',
  'ca-certificates.conf',
  'pki',
  'alternatives',
  'ld.so.cache',
  'ld.so.conf',
  'ld.so.conf.d',
  'localtime',
  'timezone',
  'mime.types',
  'services',
  'protocols',
  'magic',
  'terminfo',
  'python3',
]

export const etcStubs: Readonly<Record<string, string>> = {
  passwd: `root:x:0:0::/nonexistent:/usr/sbin/nologin\nagent:x:${insideUser}:${insideUser}::${insideHome}:/bin/sh\n`,
  group: `root:x:0:\nagent:x:${insideUser}:\n`,
  hosts: '127.0.0.1 localhost\n::1 localhost\n',
  'nsswitch.conf': 'passwd: files\ngroup: files\nhosts: files\nservices: files\nprotocols: files\n',
  'resolv.conf': '',
}

/** The options of bubblewrap. Later ones are mounted over earlier ones. */
export function wallOptions(walls: Walls): string[] {
  return [
    ...[
      '--unshare-user',
      '--unshare-pid',
      '--unshare-ipc',
      '--unshare-uts',
      '--unshare-cgroup',
      '--unshare-net',
    ],
    ...['--disable-userns', '--cap-drop', 'ALL', '--die-with-parent', '--new-session'],
    ...['--uid', String(insideUser), '--gid', String(insideUser), '--hostname', 'sandbox'],
    ...systemOptions(),
    ...['--proc', '/proc', '--dev', '/dev', '--size', String(walls.sharedMemory), '--tmpfs', '/dev/shm'],
    ...(walls.isEtcWhole ? ['--ro-bind', walls.etc, '/etc'] : etcOptions(walls.etc)),
    ...['--bind', walls.temporary, '/tmp', '--symlink', '/tmp', '/var/tmp'],
    ...(walls.proxy === undefined ? [] : ['--ro-bind', walls.proxy, '/run/openrath']),
    ...walls.read.flatMap(({ source, at }) => ['--ro-bind', source, at]),
    ...['--bind', walls.workspace, walls.inside],
    ...walls.guarded.flatMap(({ path, isReadOnly }) => [
      isReadOnly ? '--ro-bind' : '--bind',
      `${walls.workspace}/${path}`,
      `${walls.inside}/${path}`,
    ]),
    ...['--bind', walls.record.source, walls.record.at],
    ...['--ro-bind', walls.node, process.execPath],
    ...['--remount-ro', '/dev'],
    // Whatever is not one of the mounts above lies in memory, and would be a place to fill it.
    ...['--remount-ro', '/', '--chdir', walls.cwd],
    '--clearenv',
    ...Object.entries(walls.env).flatMap(([name, value]) => ['--setenv', name, value]),
  ]
}

function etcOptions(etc: string): string[] {
  return [
    ...Object.keys(etcStubs).flatMap(name => ['--ro-bind', `${etc}/${name}`, `/etc/${name}`]),
    ...etcOfHost.flatMap(name => ['--ro-bind-try', `/etc/${name}`, `/etc/${name}`]),
  ]
}

/** The programs of this machine. Where `/bin` and its like are links into `/usr`, they are there too. */
function systemOptions(): string[] {
  const others = ['/bin', '/sbin', '/lib', '/lib32', '/lib64', '/libx32']
  return [
    ...['--ro-bind', '/usr', '/usr'],
    ...others
      .filter(existsSync)
      .flatMap(path =>
        lstatSync(path).isSymbolicLink()
          ? ['--symlink', readlinkSync(path), path]
          : ['--ro-bind', path, path],
      ),
  ]
}
