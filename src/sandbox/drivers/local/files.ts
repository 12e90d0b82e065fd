import { constants, type Dirent, type Stats } from 'node:fs'
import {
  chmod,
  type FileHandle,
  lstat,
  mkdir,
  open,
  readdir,
  rename,
  rm,
  rmdir,
  stat,
} from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { RathError, show } from '../../../base/errors.ts'
import { newId } from '../../../base/ids.ts'
import type { FileEntry, FileKind, FileStat, SandboxFiles, SearchQuery, SearchResult } from '../../spec.ts'
import { pathError, type WorkspacePaths } from './paths.ts'
import { searchFiles } from './search.ts'

/** The files of a folder on this machine. A command that swaps a folder for a link at the right moment can still deceive it. */
export class LocalFiles implements SandboxFiles {
  readonly #paths: WorkspacePaths
  readonly #check: () => void

  /** `check` throws once the sandbox is closed. */
  constructor(paths: WorkspacePaths, check: () => void) {
    this.#paths = paths
    this.#check = check
  }

  read(path: string, range: { readonly start?: number; readonly end?: number } = {}): Promise<Uint8Array> {
    return this.#on(path, async real => {
      // Without O_NONBLOCK, opening a pipe would wait for somebody to write into it.
      const flags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK
      const file = await open(real, flags)
      try {
        const found = await file.stat()
        if (!found.isFile()) {
          throw new RathError('path-kind', `${show(path)} is a ${nameOf(found)}, not a file.`, {
            data: { path },
          })
        }
        return await readRange(file, found.size, range)
      } finally {
        await file.close()
      }
    })
  }

  write(path: string, data: string | Uint8Array, options: { readonly mode?: number } = {}): Promise<void> {
    return this.#on(path, async real => {
      const before = await statOrNull(real)
      if (before?.isDirectory()) {
        throw new RathError('path-kind', `${show(path)} is a folder, not a file.`, { data: { path } })
      }
      await mkdir(dirname(real), { recursive: true })
      const mode = options.mode ?? (before?.isFile() ? before.mode & 0o7777 : undefined)
      const temporary = join(dirname(real), `.${basename(real).slice(0, 100)}.${newId()}.tmp`)
      try {
        await writeNew(temporary, data, mode)
        await rename(temporary, real)
      } catch (error) {
        await rm(temporary, { force: true })
        throw error
      }
    })
  }

  async stat(path: string): Promise<FileStat | null> {
    return this.#on(path, async real => {
      const found = await statOrNull(real)
      if (found === null) return null
      return { kind: kindOf(found), size: found.size, mode: found.mode & 0o7777, modified: found.mtimeMs }
    })
  }

  list(path: string): Promise<readonly FileEntry[]> {
    return this.#on(path, async real => {
      const entries = await readdir(real, { withFileTypes: true })
      return entries.map(entry => ({ name: entry.name, kind: kindOf(entry) })).sort(byName)
    })
  }

  mkdir(path: string): Promise<void> {
    return this.#on(path, async real => void (await mkdir(real, { recursive: true })))
  }

  remove(path: string, { recursive = false }: { readonly recursive?: boolean } = {}): Promise<void> {
    return this.#onEntry(path, async entry => {
      const found = await lstat(entry)
      if (!found.isDirectory()) return rm(entry)
      return recursive ? rm(entry, { recursive: true }) : rmdir(entry)
    })
  }

  rename(from: string, to: string): Promise<void> {
    return this.#onEntry(from, source =>
      this.#onEntry(to, async target => {
        await lstat(source).catch(error => {
          throw pathError(error, from)
        })
        await mkdir(dirname(target), { recursive: true })
        await rename(source, target)
      }),
    )
  }

  search(query: SearchQuery): Promise<SearchResult> {
    const { path = '.' } = query
    return this.#on(path, real => searchFiles(query, real, at => this.#paths.relative(at)))
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
  file: FileHandle,
  size: number,
  { start = 0, end }: { readonly start?: number; readonly end?: number },
): Promise<Uint8Array> {
  if (start === 0 && end === undefined) return new Uint8Array(await file.readFile())
  const from = Math.min(Math.max(0, start), size)
  const bytes = new Uint8Array(Math.max(0, Math.min(end ?? size, size) - from))
  let read = 0
  while (read < bytes.length) {
    const { bytesRead } = await file.read(bytes, read, bytes.length - read, from + read)
    if (bytesRead === 0) break
    read += bytesRead
  }
  return bytes.subarray(0, read)
}

async function writeNew(path: string, data: string | Uint8Array, mode: number | undefined): Promise<void> {
  const file = await open(path, 'wx', mode ?? 0o666)
  try {
    await file.writeFile(data)
  } finally {
    await file.close()
  }
  // The mode of `open` is cut by the umask; one that was asked for is not.
  if (mode !== undefined) await chmod(path, mode)
}

async function statOrNull(path: string): Promise<Stats | null> {
  try {
    return await stat(path)
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'ENOENT' || code === 'ENOTDIR') return null
    throw error
  }
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
