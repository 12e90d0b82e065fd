import { lstatSync, readlinkSync, realpathSync } from 'node:fs'
import { basename, dirname, isAbsolute, join, sep } from 'node:path'
import { RathError, show } from '../../base/errors.ts'
import { isAtOrBelow } from '../../base/platform.ts'
import { type Guard, recordError } from './guard.ts'
import { orNothing } from './or-nothing.ts'

/** As many links as Linux follows before it gives up. */
const mostLinks = 40

/** What Linux takes. */
const longestPath = 4096

/** A workspace on this machine, under the two names that it may have. */
export interface WorkspaceFolder {
  /** Where this process finds it: a real path, or one through `/proc/<pid>/root` into another mount namespace. */
  readonly root: string
  /** Where commands see it, and what absolute paths and links in it mean; `root` by default. */
  readonly inside?: string
  /** The name of a folder at its top that is not part of the workspace. */
  readonly hidden?: string
  /** What of it file tools may not change. */
  readonly guard?: Guard
}

/**
 * Keeps paths inside one folder. What it returns is real: no link is left in it to be followed somewhere else. It asks the system without
 * letting others go first: an answer takes microseconds, and the way to another thread and back a hundred.
 */
export class WorkspacePaths {
  readonly root: string
  readonly inside: string
  readonly hidden: string | undefined
  readonly #guard: Guard | undefined

  constructor({ root, inside = root, hidden, guard }: WorkspaceFolder) {
    this.#guard = guard
    this.root = root
    this.inside = inside
    this.hidden = hidden
  }

  /** Where a path leads, whether something is there or not. A link out of the workspace is refused, also one to nothing. */
  async resolve(path: string): Promise<string> {
    return this.#kept(this.#follow(this.#whole(path), path), path)
  }

  /** The same, but a link at the end stays what it is. For what is done to an entry and not to what it leads to. */
  async resolveEntry(path: string): Promise<string> {
    const whole = this.#whole(path).replace(/(?<=.)\/+$/, '')
    const name = basename(whole)
    if (name === '.' || name === '..' || whole === this.inside) return this.resolve(path)
    return this.#kept(join(this.#follow(dirname(whole), path), name), path)
  }

  /** Refuses what may be read and not be changed. */
  checkChange(real: string): void {
    this.#guard?.check(this.relative(real))
  }

  /** The same for a new folder, which changes nothing of what it is made beside. */
  checkMake(real: string): void {
    if (lstatSync(real, orNothing) === undefined) this.checkChange(real)
  }

  /** As results show it: relative to the workspace. */
  relative(real: string): string {
    return real === this.root ? '.' : real.slice(behind(this.root).length)
  }

  /** As commands see it. */
  seen(real: string): string {
    return real === this.root ? this.inside : behind(this.inside) + this.relative(real)
  }

  #whole(path: string): string {
    if (typeof path !== 'string' || path.includes('\0')) {
      throw new RathError('invalid-argument', `A path is text without a zero byte, not ${show(path)}.`)
    }
    if (path.length > longestPath) {
      throw new RathError(
        'invalid-argument',
        `A path has at most ${longestPath} characters, as Linux has it; this one has ${path.length}: ${show(path)}.`,
      )
    }
    return isAbsolute(path) ? path : behind(this.inside) + path
  }

  /** From where commands see a path to where this process finds it, if it is part of the workspace. */
  #kept(seen: string, path: string): string {
    if (!isWithin(seen, this.inside)) throw this.#outside(path)
    const relative = seen.slice(behind(this.inside).length)
    if (this.hidden !== undefined && isAtOrBelow(relative, this.hidden)) {
      throw recordError(path)
    }
    return relative === '' ? this.root : behind(this.root) + relative
  }

  #outside(path: string): RathError {
    return new RathError(
      'path-outside',
      `${show(path)} leads outside the workspace, ${this.inside}. Give a path inside it, such as "src/main.ts".`,
      { data: { path } },
    )
  }

  #follow(whole: string, given: string): string {
    // Through /proc/<pid>/root the system's own answer would be about another folder of the same name.
    if (this.root !== this.inside) return this.#followByName(whole, given)
    try {
      // The system's own answer, and the usual case: `link/..` is the parent of the link's target.
      return realpathSync.native(whole)
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException
      if (code !== 'ENOENT' && code !== 'ENOTDIR') throw pathError(error, given)
      return this.#followByName(whole, given)
    }
  }

  /** One name at a time, since the system gives no answer for what is not there. What lies behind a missing name is taken as written. */
  #followByName(whole: string, given: string): string {
    let here: string = sep
    let links = 0
    const rest = namesOf(whole)
    for (let name = rest.pop(); name !== undefined; name = rest.pop()) {
      if (name === '..') here = dirname(here)
      if (name === '..' || name === '.') continue
      const next = join(here, name)
      const target = this.#linkAt(next)
      if (target === undefined) {
        here = next
        continue
      }
      if (++links > mostLinks) {
        throw new RathError('path-outside', `${show(given)} goes through too many links.`, {
          data: { path: given },
        })
      }
      if (isAbsolute(target)) here = sep
      rest.push(...namesOf(target))
    }
    return here
  }

  #linkAt(seen: string): string | undefined {
    // What lies around a workspace in another mount namespace cannot be seen from here, and is outside in any case.
    if (this.root !== this.inside && !isWithin(seen, this.inside)) return undefined
    const path = this.root + seen.slice(this.inside.length)
    return linkAt(this.root === this.inside ? seen : path)
  }
}

function behind(folder: string): string {
  return folder.endsWith(sep) ? folder : folder + sep
}

function isWithin(path: string, folder: string): boolean {
  return path === folder || path.startsWith(behind(folder))
}

/** Last first. */
function namesOf(path: string): string[] {
  return path
    .split(sep)
    .filter(name => name !== '')
    .reverse()
}

function linkAt(path: string): string | undefined {
  try {
    return lstatSync(path, orNothing)?.isSymbolicLink() ? readlinkSync(path) : undefined
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'ENOENT' || code === 'ENOTDIR') return undefined
    throw error
  }
}

/** What the file system said, in words for a model. */
export function pathError(error: unknown, path: string): RathError {
  if (error instanceof RathError) return error
  const { code = 'unknown', message } = error as NodeJS.ErrnoException
  const options = { cause: error, data: { path, code } }
  const shown = show(path)
  switch (code) {
    case 'ENOENT':
      return new RathError('path-missing', `There is no ${shown} in the workspace.`, options)
    case 'EISDIR':
      return new RathError('path-kind', `${shown} is a folder, not a file.`, options)
    case 'ENOTDIR':
      return new RathError('path-kind', `${shown} is not a folder, or goes through a file.`, options)
    case 'ENOTEMPTY':
      return new RathError('path-kind', `${shown} is a folder that is not empty.`, options)
    case 'EEXIST':
      return new RathError('path-kind', `${shown} is there already, and is something else.`, options)
    case 'ELOOP':
      return new RathError('path-outside', `${shown} goes through links that lead in a circle.`, options)
    default:
      return new RathError('sandbox-failed', `${shown} cannot be used: ${message}`, options)
  }
}
