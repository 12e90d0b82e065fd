import { type ChildProcess, execFile, type SpawnOptions, spawn, spawnSync } from 'node:child_process'
import { closeSync, constants, openSync, readFileSync, statSync, writeSync } from 'node:fs'
import { isAbsolute, posix, win32 } from 'node:path'
import { promisify } from 'node:util'
import { isMainThread } from 'node:worker_threads'
import { isAccessible } from './access.ts'
import { RathError, show } from './errors.ts'
import { type Platform, platformOf } from './platform.ts'

/**
 * Every program that this process starts is started here, and nowhere else in the package. Programs of the system come from its own folders: the
 * PATH of this process may name folders that a sandbox can write to, as `npm start` puts `node_modules/.bin` of the current folder first.
 */
export type StartOptions = Omit<SpawnOptions, 'env' | 'shell'>

/** Starts a program of the system, with nothing of this process's environment but what is given. */
export function startSystem(
  name: string,
  args: readonly string[],
  {
    env = {},
    ...options
  }: StartOptions & { readonly env?: Readonly<Record<string, string | undefined>> } = {},
): ChildProcess {
  return spawn(systemProgram(name), args, { ...options, env: { ...systemEnvironment(), ...env } })
}

/**
 * Starts what a person or their configuration named, with exactly this environment. A name without a slash is looked for in the PATH of that
 * environment, so give one that `trustedPath` has made where the program runs outside every sandbox. Before the first, the values that this process was
 * started with are taken out of `/proc/self/environ`, where the program could read them.
 */
export function startGiven(
  program: string,
  args: readonly string[],
  options: StartOptions & {
    readonly env: Readonly<Record<string, string | undefined>>
    readonly shell?: boolean
  },
): ChildProcess {
  hideEnvironment()
  return spawn(program, args, options)
}

/** Runs a program of the system to its end and returns what it printed; one that fails rejects with what it said. */
export async function runSystem(name: string, args: readonly string[]): Promise<string> {
  const env = systemEnvironment()
  try {
    const { stdout } = await promisify(execFile)(systemProgram(name), [...args], { env, maxBuffer: 2 ** 24 })
    return stdout
  } catch (error) {
    if (error instanceof RathError) throw error
    const { stderr = '' } = error as NodeJS.ErrnoException & { stderr?: string }
    throw new Error(stderr.trim() || (error as Error).message, { cause: error })
  }
}

/** Whether a program of the system ends well within five seconds, for those who cannot wait for it in another way. */
export function endsWell(
  name: string,
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
): boolean {
  const options = { env: { ...systemEnvironment(), ...env }, stdio: 'ignore', timeout: 5000 } as const
  return spawnSync(systemProgram(name), args, options).status === 0
}

/** What a program of the system prints, for those who cannot wait for it in another way; undefined when it fails, or takes five seconds. */
export function systemOutput(name: string, args: readonly string[]): string | undefined {
  const options = { env: systemEnvironment(), encoding: 'utf8', timeout: 5000 } as const
  const { status, stdout } = spawnSync(systemProgram(name), args, options)
  return status === 0 ? stdout : undefined
}

/** Where a program of the system lies: an absolute path, looked for once. */
export function systemProgram(name: string): string {
  const path = findProgram(name)
  if (path !== undefined) return path
  const { programFolders, pathDelimiter } = platformOf()
  throw new RathError(
    'missing-program',
    `There is no program ${show(name)} in ${programFolders.join(pathDelimiter)}. Install it there; the PATH of this process is not looked at, since a sandbox may be able to write to it.`,
    { data: { program: name } },
  )
}

const found = new Map<string, string>()

/** Undefined where the system has no such program. An absolute path is taken as it is. */
export function findProgram(
  name: string,
  folders?: readonly string[],
  platform: Platform = platformOf(),
): string | undefined {
  const { isAbsolute: isWhole, join } = platform.name === 'win32' ? win32 : posix
  if (isWhole(name)) return name
  const known = folders === undefined ? found.get(name) : undefined
  if (known !== undefined) return known
  const path = (folders ?? platform.programFolders)
    .flatMap(folder => platform.programEndings.map(ending => join(folder, name + ending)))
    .find(file => isAccessible(file, constants.X_OK))
  if (path !== undefined && folders === undefined) found.set(name, path)
  return path
}

/** What a program of the system gets. */
function systemEnvironment(): Record<string, string> {
  const { programFolders, pathDelimiter, name } = platformOf()
  const root = process.env.SystemRoot
  return {
    PATH: programFolders.join(pathDelimiter),
    LC_ALL: 'C',
    // Programs of Windows do not start without it.
    ...(name === 'win32' && root !== undefined && { SystemRoot: root }),
  }
}

let path: string | undefined

/**
 * The PATH of this process without names that lead into the current folder, and without folders that were not there when it was first asked for: a
 * sandbox may make those later. Folders of it that lie in a workspace are read-only in sandboxes.
 */
export function trustedPath(): string {
  path ??= foldersOf(process.env.PATH ?? '').join(platformOf().pathDelimiter)
  return path
}

/** Absolute folders of a PATH that are there. */
export function foldersOf(list: string): string[] {
  return list.split(platformOf().pathDelimiter).filter(folder => isAbsolute(folder) && isFolder(folder))
}

/** Not one that this user may not look at: nothing can be started from there either. */
function isFolder(path: string): boolean {
  try {
    return statSync(path).isDirectory()
  } catch {
    return false
  }
}

let isDone = false

/**
 * Blanks the values in the block of memory that this process was started with, which every program of the same user reads as `/proc/PID/environ`.
 * `process.env` keeps them: setting or deleting a variable there makes a copy and leaves the block as it was, so the block itself is written to.
 * Done once, on Linux. The memory of this process, and the blocks of the programs that started it, still hold them.
 */
function hideEnvironment(): void {
  // The variables of a worker are a copy, and those of the process would be lost.
  if (isDone || !platformOf().proc || !isMainThread) return
  isDone = true
  try {
    blank(readFileSync('/proc/self/environ'), blockAt())
  } catch {
    // A system that does not let a process write to its own memory leaves it as it is, as the page on security says.
  }
}

/** Read by the loader, the C library or Node itself, some of which keep pointers into the block. */
const needed =
  /^(PATH|HOME|USER|LOGNAME|SHELL|TERM|LANG|LANGUAGE|TZ|TMPDIR|PWD|(LC|LD|NODE|UV|ICU|SSL|OPENSSL|MALLOC|GLIBC|GCONV|LOCPATH|NLSPATH|RES)_?.*)$/

function blank(block: Buffer, { start, length }: { readonly start: number; readonly length: number }): void {
  if (block.length !== length) return
  const memory = openSync('/proc/self/mem', 'r+')
  try {
    for (let at = 0; at < block.length; ) {
      const found = block.indexOf(0, at)
      const end = found < 0 ? block.length : found
      const entry = block.subarray(at, end)
      const from = at + entry.indexOf('=') + 1
      const name = block.toString('latin1', at, from - 1)
      if (from > at + 1 && !needed.test(name) && moved(name)) {
        writeSync(memory, Buffer.alloc(end - from, '*'), 0, end - from, start + from)
      }
      at = end + 1
    }
  } finally {
    closeSync(memory)
  }
}

/** Has the system keep a variable elsewhere. False for one that would not come back to the letter. */
function moved(name: string): boolean {
  const value = process.env[name]
  if (value === undefined) return true
  if (value.includes('\ufffd')) return false
  process.env[name] = value
  return process.env[name] === value
}

function blockAt(): { readonly start: number; readonly length: number } {
  const stat = readFileSync('/proc/self/stat', 'latin1')
  // The name of the program may hold spaces and brackets; the fields behind it are numbers, from the third on.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  const [start, end] = [Number(fields[50 - 3]), Number(fields[51 - 3])]
  return { start, length: end - start }
}
