import { lstat, readlink, realpath } from 'node:fs/promises'
import { basename, dirname, isAbsolute, join, sep } from 'node:path'
import { RathError, show } from '../../../base/errors.ts'

/** As many links as Linux follows before it gives up. */
const mostLinks = 40

/** Keeps paths inside one folder. What it returns is real: no link is left in it to be followed somewhere else. */
export class WorkspacePaths {
  readonly root: string

  /** `root` is a real path. */
  constructor(root: string) {
    this.root = root
  }

  /** Where a path leads, whether something is there or not. A link out of the workspace is refused, also one to nothing. */
  async resolve(path: string): Promise<string> {
    const real = await follow(this.#whole(path), path)
    if (!this.#isInside(real)) throw this.#outside(path)
    return real
  }

  /** The same, but a link at the end stays what it is. For what is done to an entry and not to what it leads to. */
  async resolveEntry(path: string): Promise<string> {
    const whole = this.#whole(path).replace(/(?<=.)\/+$/, '')
    const name = basename(whole)
    if (name === '.' || name === '..' || whole === this.root) return this.resolve(path)
    const entry = join(await follow(dirname(whole), path), name)
    if (!this.#isInside(entry)) throw this.#outside(path)
    return entry
  }

  /** As results show it: relative to the workspace. */
  relative(real: string): string {
    return real === this.root ? '.' : real.slice(this.#inside.length)
  }

  #whole(path: string): string {
    if (typeof path !== 'string' || path.includes('\0')) {
      throw new RathError('invalid-argument', `A path is text without a zero byte, not ${show(path)}.`)
    }
    return isAbsolute(path) ? path : this.#inside + path
  }

  get #inside(): string {
    return this.root.endsWith(sep) ? this.root : this.root + sep
  }

  #isInside(real: string): boolean {
    return real === this.root || real.startsWith(this.#inside)
  }

  #outside(path: string): RathError {
    return new RathError(
      'path-outside',
      `${show(path)} leads outside the workspace, ${this.root}. Give a path inside it, such as "src/main.ts".`,
      { data: { path } },
    )
  }
}

async function follow(whole: string, given: string): Promise<string> {
  try {
    // The system's own answer, and the usual case: `link/..` is the parent of the link's target.
    return await realpath(whole)
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code !== 'ENOENT' && code !== 'ENOTDIR') throw pathError(error, given)
    return await followToNothing(whole, given)
  }
}

/** One name at a time, since the system gives no answer for what is not there. What lies behind a missing name is taken as written. */
async function followToNothing(whole: string, given: string): Promise<string> {
  let here: string = sep
  let links = 0
  const rest = namesOf(whole)
  for (let name = rest.pop(); name !== undefined; name = rest.pop()) {
    if (name === '..') here = dirname(here)
    if (name === '..' || name === '.') continue
    const next = join(here, name)
    const target = await linkAt(next)
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

/** Last first. */
function namesOf(path: string): string[] {
  return path
    .split(sep)
    .filter(name => name !== '')
    .reverse()
}

async function linkAt(path: string): Promise<string | undefined> {
  try {
    return (await lstat(path)).isSymbolicLink() ? await readlink(path) : undefined
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
