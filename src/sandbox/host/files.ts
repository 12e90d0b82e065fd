import {
  closeSync,
  constants,
  type Dirent,
  fchmodSync,
  fchownSync,
  fstatSync,
  lchownSync,
  lstatSync,
  mkdirSync,
  openSync,
  renameSync,
  rmSync,
  type Stats,
} from 'node:fs'
import { lstat, open, readdir, rename, rm, rmdir } from 'node:fs/promises'
import { basename, dirname } from 'node:path'
import { RathError, show } from '../../base/errors.ts'
import { platformOf } from '../../base/platform.ts'
import type { FileEntry, FileKind, FileStat, SandboxFiles, SearchQuery, SearchResult } from '../spec.ts'
import { isQuick, readBytes, readWhole, writeBytes } from './bytes.ts'
import { type Held, hold } from './held.ts'
import { move } from './move.ts'
import { orNothing } from './or-nothing.ts'
import { pathError, type WorkspacePaths } from './paths.ts'
import { searchFiles } from './search.ts'
import { temporaryName } from './temporary-name.ts'

/** Whose new files are, where this process may give them away. */
export interface Owner {
  readonly uid: number
  readonly gid: number
}

/** The files of a folder on this machine. */
export class HostFiles implements SandboxFiles {
  readonly #paths: WorkspacePaths
  readonly #check: () => void
  readonly #owner: Owner | undefined

  /** `check` throws once the sandbox is closed. */
  constructor(paths: WorkspacePaths, check: () => void, owner?: Owner) {
    this.#paths = paths
    this.#check = check
    this.#owner = owner
  }

  read(path: string, range: { readonly start?: number; readonly end?: number } = {}): Promise<Uint8Array> {
    return this.#on(path, async real => {
      using held = hold(this.#paths, real, 'file')
      const found = fstatSync(held.fd)
      if (!found.isFile()) {
        throw new RathError('path-kind', `${show(path)} is a ${nameOf(found)}, not a file.`, {
          data: { path },
        })
      }
      return await readRange(held.fd, found.size, range)
    })
  }

  write(path: string, data: string | Uint8Array, options: { readonly mode?: number } = {}): Promise<void> {
    return this.#on(path, async real => {
      this.#paths.checkChange(real)
      using folder = this.#makeFolder(dirname(real))
      const target = `${folder.path}/${basename(real)}`
      const before = lstatSync(target, orNothing)
      if (before?.isDirectory()) {
        throw new RathError('path-kind', `${show(path)} is a folder, not a file.`, { data: { path } })
      }
      const mode = options.mode ?? (before?.isFile() ? before.mode & 0o7777 : undefined)
      const temporary = `${folder.path}/${temporaryName(basename(real))}`
      try {
        await writeNew(temporary, data, mode, this.#owner)
        // Some systems begin to write a new file to the disk before it takes the place of another one.
        if (isQuick(data.length)) renameSync(temporary, target)
        else await rename(temporary, target)
      } catch (error) {
        rmSync(temporary, { force: true })
        throw error
      }
    })
  }

  async stat(path: string): Promise<FileStat | null> {
    return this.#on(path, async real => {
      const found = this.#statOrNull(real)
      if (found === null) return null
      return { kind: kindOf(found), size: found.size, mode: found.mode & 0o7777, modified: found.mtimeMs }
    })
  }

  list(path: string): Promise<readonly FileEntry[]> {
    return this.#on(path, async real => {
      using folder = hold(this.#paths, real, 'folder')
      const entries = await readdir(folder.path, { withFileTypes: true })
      const hidden = real === this.#paths.root ? this.#paths.hidden : undefined
      return entries
        .filter(({ name }) => name !== hidden)
        .map(entry => ({ name: entry.name, kind: kindOf(entry) }))
        .sort(byName)
    })
  }

  mkdir(path: string): Promise<void> {
    return this.#on(path, async real => {
      this.#paths.checkMake(real)
      using _ = this.#makeFolder(real)
    })
  }

  remove(path: string, { recursive = false }: { readonly recursive?: boolean } = {}): Promise<void> {
    return this.#onEntry(path, async entry => {
      this.#paths.checkChange(entry)
      using folder = hold(this.#paths, dirname(entry), 'folder')
      await removeIn(folder.path, basename(entry), recursive)
    })
  }

  rename(from: string, to: string): Promise<void> {
    return this.#onEntry(from, source =>
      this.#onEntry(to, async target => {
        this.#paths.checkChange(source)
        this.#paths.checkChange(target)
        await lstat(source).catch(error => {
          throw pathError(error, from)
        })
        using here = hold(this.#paths, dirname(source), 'folder')
        using there = this.#makeFolder(dirname(target))
        await move(`${here.path}/${basename(source)}`, `${there.path}/${basename(target)}`)
      }),
    )
  }

  search(query: SearchQuery): Promise<SearchResult> {
    const { path = '.' } = query
    return this.#on(path, real => searchFiles(query, real, this.#paths))
  }

  /** Opens a folder that is made if it is missing, with its parents. */
  #makeFolder(real: string): Held {
    try {
      return hold(this.#paths, real, 'folder')
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT' || real === this.#paths.root) throw error
    }
    using parent = this.#makeFolder(dirname(real))
    const path = `${parent.path}/${basename(real)}`
    try {
      mkdirSync(path)
      if (this.#owner) lchownSync(path, this.#owner.uid, this.#owner.gid)
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
    }
    return hold(this.#paths, real, 'folder')
  }

  #statOrNull(real: string): Stats | null {
    try {
      using held = hold(this.#paths, real, 'entry')
      return fstatSync(held.fd)
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException
      if (code === 'ENOENT' || code === 'ENOTDIR') return null
      throw error
    }
  }

  async #on<T>(path: string, work: (real: string) => Promise<T>): Promise<T> {
    this.#check()
    try {
      return await work(await this.#paths.resolve(path))
    } catch (error) {
      throw pathError(error, path)
    }
  }

  async #onEntry(path: string, work: (entry: string) => Promise<void>): Promise<void> {
    this.#check()
    try {
      const entry = await this.#paths.resolveEntry(path)
      if (entry === this.#paths.root) {
        throw new RathError('path-kind', `${show(path)} is the workspace itself, which stays where it is.`)
      }
      await work(entry)
    } catch (error) {
      throw pathError(error, path)
    }
  }
}

async function readRange(
  fd: number,
  size: number,
  { start = 0, end }: { readonly start?: number; readonly end?: number },
): Promise<Uint8Array> {
  if (start === 0 && end === undefined) return new Uint8Array(await readWhole(fd, size))
  const from = Math.min(Math.max(0, start), size)
  return new Uint8Array(await readBytes(fd, from, Math.min(end ?? size, size)))
}

async function writeNew(
  path: string,
  data: string | Uint8Array,
  mode: number | undefined,
  owner: Owner | undefined,
): Promise<void> {
  const fd = openSync(path, 'wx', mode ?? 0o666)
  try {
    await writeBytes(fd, data)
    if (owner) fchownSync(fd, owner.uid, owner.gid)
    // The mode of `open` is cut by the umask; one that was asked for is not.
    if (mode !== undefined) fchmodSync(fd, mode)
  } finally {
    closeSync(fd)
  }
}

/** By the number of each folder on the way down, so that no link put in its place is gone through. */
async function removeIn(folder: string, name: string, recursive: boolean): Promise<void> {
  const path = `${folder}/${name}`
  const found = await lstat(path)
  if (!found.isDirectory()) return rm(path)
  if (recursive) {
    const inner = await open(path, constants.O_DIRECTORY | constants.O_NOFOLLOW)
    try {
      const at = platformOf().proc ? `/proc/self/fd/${inner.fd}` : path
      for (const entry of await readdir(at)) await removeIn(at, entry, true)
    } finally {
      await inner.close()
    }
  }
  return rmdir(path)
}

function kindOf(found: Stats | Dirent): FileKind {
  if (found.isFile()) return 'file'
  if (found.isDirectory()) return 'directory'
  return found.isSymbolicLink() ? 'symlink' : 'other'
}

function nameOf(found: Stats): string {
  if (found.isDirectory()) return 'folder'
  return found.isFIFO() ? 'pipe' : found.isSocket() ? 'socket' : 'device'
}

function byName(one: FileEntry, other: FileEntry): number {
  return one.name < other.name ? -1 : 1
}
