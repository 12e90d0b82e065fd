/**
 * What differs between operating systems, in one place, so that a test can ask for each of them. What needs Linux says so by name and is
 * refused elsewhere; nothing falls back to less protection without a word.
 */
export interface Platform {
  /** As Node has it: `linux`, `darwin`, `win32`. */
  readonly name: string
  /** As people call it. */
  readonly label: string
  /** Folders that programs of the system are taken from, outside every workspace. */
  readonly programFolders: readonly string[]
  /** What a program's file name may end with. */
  readonly programEndings: readonly string[]
  readonly pathDelimiter: ':' | ';'
  /** One signal reaches a process and all that it started. */
  readonly processGroups: boolean
  /** Open files, processes and their environments can be looked at under `/proc`. */
  readonly proc: boolean
  /** Files have permission bits that keep other users out. */
  readonly modes: boolean
  /** Opens a file in the program that people use for it. */
  readonly opener: string
  /** What a person does without here, by the name of what needs another system. */
  readonly lacks: readonly Lack[]
  /** One spelling for all names that lead to the same entry of a folder. */
  foldName(name: string): string
}

export interface Lack {
  readonly what: string
  readonly instead: string
}

export function platformOf(
  name: string = process.platform,
  environment: Readonly<Record<string, string | undefined>> = process.env,
): Platform {
  if (name === 'darwin') return darwin
  if (name === 'win32') return windows(environment.SystemRoot ?? 'C:\\Windows')
  return name === 'linux' || name === 'android' ? linux : { ...darwin, name, label: name, foldName: same }
}

/** Kills a process and what it started, as far as the system can; false when it is gone. */
export function killGroup(pid: number, signal: string, platform = platformOf()): boolean {
  try {
    return process.kill(platform.processGroups ? -pid : pid, signal)
  } catch {
    return false
  }
}

/** Whether a relative path is one entry, or lies below it. Names are compared as the system compares them. */
export function isAtOrBelow(path: string, entry: string, platform = platformOf()): boolean {
  const split = (text: string) => text.split(platform.name === 'win32' ? /[\\/]/ : '/')
  const names = split(path).map(platform.foldName)
  return split(entry).every((name, i) => names[i] === platform.foldName(name))
}

const same = (name: string) => name

const linux: Platform = Object.freeze<Platform>({
  name: 'linux',
  label: 'Linux',
  programFolders: ['/usr/local/sbin', '/usr/local/bin', '/usr/sbin', '/usr/bin', '/sbin', '/bin'],
  programEndings: [''],
  pathDelimiter: ':',
  processGroups: true,
  proc: true,
  modes: true,
  opener: 'xdg-open',
  lacks: [],
  foldName: same,
})

const noIsolated: Lack = {
  what: 'isolated needs Linux (namespaces, seccomp, bubblewrap)',
  instead: 'use docker, or run in a Linux virtual machine',
}

const darwin: Platform = Object.freeze<Platform>({
  name: 'darwin',
  label: 'macOS',
  programFolders: ['/usr/bin', '/bin', '/usr/sbin', '/sbin', '/opt/homebrew/bin', '/usr/local/bin'],
  programEndings: [''],
  pathDelimiter: ':',
  processGroups: true,
  proc: false,
  modes: true,
  opener: 'open',
  lacks: [
    noIsolated,
    {
      what: 'local ends every process of a command on Linux only (/proc)',
      instead: "here it ends those of the command's own group; use docker for commands that you do not trust",
    },
    {
      what: 'file tools notice a folder that is swapped for a link while they work on Linux only (/proc)',
      instead: 'use docker for commands that you do not trust',
    },
    {
      what: 'branches of files are overlays on Linux only',
      instead: 'files are copied here',
    },
  ],
  // HFS+ and APFS take letters of either case and both ways to write an accent for one name, and HFS+ skips letters without a width.
  foldName: name =>
    name
      .replace(/[\u200c-\u200f\u202a-\u202e\u206a-\u206f\ufeff]/g, '')
      .normalize('NFC')
      .toLowerCase(),
})

function windows(root: string): Platform {
  return Object.freeze<Platform>({
    name: 'win32',
    label: 'Windows',
    programFolders: [
      `${root}\\System32`,
      root,
      `${root}\\System32\\WindowsPowerShell\\v1.0`,
      'C:\\Program Files\\Git\\cmd',
    ],
    programEndings: ['.exe', '.cmd', '.com'],
    pathDelimiter: ';',
    processGroups: false,
    proc: false,
    modes: false,
    opener: 'explorer',
    lacks: [
      noIsolated,
      {
        what: 'local needs /bin/sh and process groups, which Windows does not have',
        instead: 'run in WSL, or use docker or a remote sandbox',
      },
      {
        what: 'files of this user are not kept from other users by permission bits',
        instead: 'use a folder that only you can read',
      },
      { what: 'branches of files are overlays on Linux only', instead: 'run in WSL' },
    ],
    // Windows drops dots and spaces at the end of a name, and what follows a colon names a stream of the same file.
    foldName: name =>
      name
        .replace(/:.*$/s, '')
        .replace(/[. ]+$/, '')
        .toLowerCase(),
  })
}
