import { RathError, show } from '../../base/errors.ts'
import { newId } from '../../base/ids.ts'
import type { FileEntry, FileKind, FileStat, SandboxFiles, SearchQuery, SearchResult } from '../spec.ts'
import {
  listScript,
  makeScript,
  readScript,
  removeScript,
  renameScript,
  statScript,
  writeScript,
} from './file-scripts.ts'
import { checkPath, refusal, refusalCode } from './path-script.ts'
import { searchByShell } from './search.ts'
import type { Shell, ShellOptions } from './shell.ts'

/** The files of a place that is reached by commands alone. Each call is one script, which follows the path where the files lie. */
export class ShellFiles implements SandboxFiles {
  readonly #shell: Shell

  constructor(shell: Shell) {
    this.#shell = shell
  }

  async read(
    path: string,
    { start = 0, end }: { readonly start?: number; readonly end?: number } = {},
  ): Promise<Uint8Array> {
    const from = Math.max(0, start)
    const length = end === undefined ? '' : String(Math.max(0, end - from))
    return this.#call(readScript, path, [String(from), length], { isLong: true })
  }

  async write(
    path: string,
    data: string | Uint8Array,
    { mode }: { readonly mode?: number } = {},
  ): Promise<void> {
    const input = typeof data === 'string' ? new TextEncoder().encode(data) : data
    const args = [String(input.length), mode?.toString(8) ?? '', newId()]
    await this.#call(writeScript, path, args, { input })
  }

  async stat(path: string): Promise<FileStat | null> {
    const line = text(await this.#call(statScript, path)).trim()
    if (line === '') return null
    const [mode = '', size, modified] = line.split(' ')
    const bits = Number.parseInt(mode, 16)
    return {
      kind: kinds.get(bits >> 12) ?? 'other',
      size: Number(size),
      mode: bits & 0o7777,
      modified: Number(modified) * 1000,
    }
  }

  async list(path: string): Promise<readonly FileEntry[]> {
    const records = text(await this.#call(listScript, path))
      .split('\0')
      .slice(0, -1)
    return records
      .map(record => ({ name: record.slice(1), kind: letters[record[0] as string] ?? 'other' }))
      .sort((one, other) => (one.name < other.name ? -1 : 1))
  }

  async mkdir(path: string): Promise<void> {
    await this.#call(makeScript, path)
  }

  async remove(path: string, { recursive = false }: { readonly recursive?: boolean } = {}): Promise<void> {
    await this.#call(removeScript, path, [recursive ? 'all' : ''])
  }

  async rename(from: string, to: string): Promise<void> {
    checkPath(to)
    await this.#call(renameScript, from, [to])
  }

  async search(query: SearchQuery): Promise<SearchResult> {
    const call = (script: string, args: readonly string[], options: ShellOptions = {}) =>
      this.#call(script, query.path ?? '.', args, options)
    return searchByShell(query, call)
  }

  async #call(
    script: string,
    path: string,
    args: readonly string[] = [],
    options: ShellOptions = {},
  ): Promise<Uint8Array> {
    checkPath(path)
    const { root } = this.#shell
    const { exitCode, output, errors } = await this.#shell.run(script, [root, path, ...args], options)
    if (exitCode === 0) return output
    // A script that has two paths says which one it means.
    const [word = '', which] = exitCode === refusalCode ? errors.trim().split(' ') : []
    const about = which === 'second' ? (args[0] as string) : path
    const refused = refusal(word, about, root)
    if (refused !== undefined) throw refused
    throw new RathError('sandbox-failed', `${show(path)} cannot be used: ${errors.trim() || exitCode}`, {
      data: { path, exitCode },
    })
  }
}

/** By the first digits of a mode, as the system numbers kinds. */
const kinds = new Map<number, FileKind>([
  [8, 'file'],
  [4, 'directory'],
  [10, 'symlink'],
])

const letters: Readonly<Record<string, FileKind>> = { f: 'file', d: 'directory', l: 'symlink' }

function text(bytes: Uint8Array): string {
  return new TextDecoder().decode(bytes)
}
