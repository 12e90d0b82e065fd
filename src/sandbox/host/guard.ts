import { chownSync, lstatSync, mkdirSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { RathError, show } from '../../base/errors.ts'
import { isAtOrBelow } from '../../base/platform.ts'
import { GitGuard, isMissing, linkAt, putBack, removeMade, targetInside } from './git-guard.ts'
import { loadedCodeIn, missingModulesIn } from './loaded-code.ts'
import { orNothing } from './or-nothing.ts'

/** The folder of a workspace that holds the record of what happened in it. Commands neither see nor change it. */
export const recordFolder = '.openrath'

/**
 * Parts of a workspace that decide what programs run outside the sandbox: `code` that this process has loaded, and settings of `git`. They are
 * read-only unless the spec names them in `writable`.
 */
export type GuardedPart = 'code' | 'git'

export function isParts(value: unknown): value is readonly GuardedPart[] {
  return Array.isArray(value) && value.every(part => part === 'code' || part === 'git')
}

export interface Guarded {
  /** Relative to the workspace. */
  readonly path: string
  readonly part: GuardedPart
}

/** What of one workspace is to be mounted over itself, outermost first, and how. */
export interface GuardMount {
  readonly path: string
  readonly isReadOnly: boolean
}

export class Guard {
  readonly #root: string
  readonly #mayHoldCode: boolean
  #code: readonly Guarded[] | undefined
  #missingModules: readonly string[] | undefined
  readonly #git: GitGuard | undefined

  /** Code, and repositories below the top, are looked for once. The folder of a branch holds no code that was loaded. */
  constructor(root: string, writable: readonly GuardedPart[], mayHoldCode = true) {
    this.#root = root
    this.#git = writable.includes('git') ? undefined : new GitGuard(root)
    this.#mayHoldCode = mayHoldCode && !writable.includes('code')
  }

  /** Looked for when first asked. */
  get code(): readonly Guarded[] {
    this.#code ??= this.#mayHoldCode ? this.#loaded().map(path => ({ path, part: 'code' })) : []
    return this.#code
  }

  /** A link is no place for a mount: what it leads to is. */
  #loaded(): string[] {
    const found = loadedCodeIn(this.#root)
    return [...new Set([...found, ...found.flatMap(path => targetInside(this.#root, path) ?? [])])]
  }

  /** Everything that is guarded now. A repository that a command makes at the top counts from the next command on. */
  all(): readonly Guarded[] {
    const git = this.#git?.settings() ?? []
    return [...this.code, ...git.map((path): Guarded => ({ path, part: 'git' }))]
  }

  /**
   * Mounts for one command. Folders on the way to something guarded are mounts too, since the kernel moves and removes anything but a mount, and
   * a folder moved away could be made again with other files. Makes the folders that have to be there to be guarded.
   */
  mounts(): readonly GuardMount[] {
    const mounts = new Map<string, boolean>()
    for (const { path } of this.all()) {
      // A link is not followed: it could lead a mount out of the workspace. It is put back when a command changes it, and stays where it is.
      const odd = this.#make(path)
      if (odd === undefined) mounts.set(path, true)
      for (let at = dirname(odd ?? path); at !== '.'; at = dirname(at)) {
        if (!mounts.has(at)) mounts.set(at, false)
      }
    }
    const paths = [...mounts].map(([path, isReadOnly]) => ({ path, isReadOnly }))
    // What lies in something read-only is read-only by that.
    return paths
      .filter(one => !paths.some(two => two.isReadOnly && one.path.startsWith(`${two.path}/`)))
      .sort((one, two) => (one.path < two.path ? -1 : 1))
  }

  /** Refuses to change an entry that is guarded, lies in something guarded, or holds it. */
  check(relativePath: string): void {
    const missing = this.#missing().map((path): Guarded => ({ path, part: 'code' }))
    for (const { path, part } of [...this.all(), ...missing]) {
      if (isAtOrBelow(relativePath, path) || isAtOrBelow(path, relativePath))
        throw readOnly(relativePath, path, part)
    }
  }

  /** Called before a command; what it returns is called after it, repairs what no mount could keep from it, and says so. */
  watch(): () => string {
    const root = this.#root
    const missing = this.#missing().filter(path => isMissing(root, path))
    const links = this.code.flatMap(({ path }) => linkAt(root, path))
    const end = this.#git?.watch()
    return () => {
      const made = missing.flatMap(path => removeMade(root, path) ?? [])
      const changed = links.filter(link => putBack(root, link))
      return [
        ...made.map(path => `the command made ${path}, which this program would load code from; removed`),
        ...changed.map(
          ({ path }) => `the command changed the link ${path}, which leads to loaded code; put back`,
        ),
        ...(end?.() ?? []),
      ]
        .map(line => `openrath: ${line}\n`)
        .join('')
    }
  }

  /** Folders that are not there, and that code would be loaded from if they were. */
  #missing(): readonly string[] {
    this.#missingModules ??= this.#mayHoldCode ? missingModulesIn(this.#root) : []
    return this.#missingModules
  }

  /** Returns what lies on the way and cannot be mounted over: a link, or a file where a folder should be. */
  #make(path: string): string | undefined {
    let at = ''
    for (const name of path.split('/')) {
      at = join(at, name)
      const found = lstatSync(join(this.#root, at), orNothing)
      if (found === undefined) makeFolder(join(this.#root, at))
      else if (!found.isDirectory()) return found.isFile() && at === path ? undefined : at
    }
    return undefined
  }
}

function readOnly(path: string, guarded: string, part: GuardedPart): RathError {
  const why =
    part === 'code'
      ? `${guarded} holds code that the program which runs you has loaded. Work in a fork, which has files of its own, or in another folder.`
      : `${guarded} can make git run programs. Commit as usual; to change settings of git, ask the person who placed this session.`
  return new RathError('path-read-only', `${show(path)} is read-only here: ${why}`, {
    data: { path, guarded, part },
  })
}

/** There is always one to be mounted on, so that no command can make it. */
export function makeRecordFolder(workspace: string): void {
  const path = join(workspace, recordFolder)
  const found = lstatSync(path, orNothing)
  if (found === undefined) makeFolder(path, 0o700)
  else if (!found.isDirectory()) {
    throw new RathError(
      'sandbox-unavailable',
      `${show(path)} is a ${found.isSymbolicLink() ? 'link' : 'file'}, and has to be a folder or missing to be kept from commands. Remove it.`,
      { data: { path } },
    )
  }
}

export function recordError(path: string): RathError {
  return new RathError(
    'path-outside',
    `${show(path)} is not part of the workspace: ${recordFolder} holds the record of what happened in it.`,
    { data: { path } },
  )
}

/** Of root's making, it belongs to whoever owns the folder around it. */
function makeFolder(path: string, mode = 0o755): void {
  mkdirSync(path, { mode })
  if (process.getuid?.() !== 0) return
  const { uid, gid } = statSync(dirname(path))
  chownSync(path, uid, gid)
}
