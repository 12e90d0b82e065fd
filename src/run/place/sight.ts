import { type Digest, digestOf, sha256 } from '../../base/digest.ts'
import { RathError } from '../../base/errors.ts'
import type { Json } from '../../base/json.ts'
import type { Sandbox, SandboxFiles, SearchQuery } from '../../sandbox/spec.ts'
import type { Seen } from '../entry.ts'

/** Looks that are kept one by one; of a call that takes more, all files count. */
const mostSeen = 200

/** A sandbox as one call has it: with files and commands that somebody watches. */
export function viewOf(sandbox: Sandbox, watched: Pick<Sandbox, 'files' | 'exec'>): Sandbox {
  const { id, backend, cwd, capabilities, hostPath, interpreters } = sandbox
  return {
    id,
    backend,
    cwd,
    capabilities,
    ...(hostPath !== undefined && { hostPath }),
    ...(interpreters && { interpreters }),
    ...(sandbox.expose && { expose: (port: number) => sandbox.expose?.(port) as Promise<string> }),
    ...watched,
    // A tool that closes it would close it for everybody.
    close: async () => {},
    [Symbol.asyncDispose]: async () => {},
  }
}

/** What one call looks at in its sandbox, each thing with the digest of what came back, so that somebody can tell later whether it still is so. */
export class Sight {
  readonly #seen = new Map<string, Seen>()
  #isOpen = false
  /** A command may have seen anything. */
  #sawAll = false

  /** The sandbox of the call, watched. */
  watch(sandbox: Sandbox): Sandbox {
    this.#isOpen = true
    return viewOf(sandbox, {
      files: this.#watchFiles(sandbox.files),
      exec: (command, options) => {
        this.#sawAll = true
        return sandbox.exec(command, options)
      },
    })
  }

  /** What was seen; `tree` is that of all files when the call began, if anybody knows it. Undefined when it never asked for its sandbox. */
  seen(tree: Digest | undefined): readonly Seen[] | undefined {
    if (!this.#isOpen) return undefined
    if (this.#sawAll || this.#seen.size > mostSeen) return [{ op: 'tree', is: tree ?? null }]
    return [...this.#seen.values()]
  }

  #watchFiles(files: SandboxFiles): SandboxFiles {
    return {
      read: (path, range = {}) => this.#note({ op: 'read', path, ...range }, () => files.read(path, range)),
      stat: path => this.#note({ op: 'stat', path }, () => files.stat(path)),
      list: path => this.#note({ op: 'list', path }, () => files.list(path)),
      search: query => this.#note({ op: 'search', query: plainQuery(query) }, () => files.search(query)),
      write: (path, data, options) => files.write(path, data, options),
      mkdir: path => files.mkdir(path),
      remove: (path, options) => files.remove(path, options),
      rename: (from, to) => files.rename(from, to),
    }
  }

  async #note<T>(look: Look, work: () => Promise<T>): Promise<T> {
    const name = JSON.stringify(look)
    const note = (is: string) => {
      // What was seen first is what it found; later looks may see what it wrote itself.
      if (!this.#seen.has(name)) this.#seen.set(name, { ...look, is } as Seen)
    }
    try {
      const result = await work()
      note(described(look.op, result))
      return result
    } catch (error) {
      note(refused(error))
      throw error
    }
  }
}

type Look =
  | { readonly op: 'read'; readonly path: string; readonly start?: number; readonly end?: number }
  | { readonly op: 'stat' | 'list'; readonly path: string }
  | { readonly op: 'search'; readonly query: Omit<SearchQuery, 'signal'> }

/** Whether everything that was seen is still so. `tree` tells of all files, when it is asked. */
export async function stillSeen(
  seen: readonly Seen[],
  files: SandboxFiles,
  tree: () => Promise<Digest | undefined>,
): Promise<boolean> {
  for (const look of seen) {
    if (look.op === 'tree') {
      if (look.is === null || look.is !== (await tree())) return false
    } else if ((await again(look, files)) !== look.is) return false
  }
  return true
}

async function again(look: Exclude<Seen, { readonly op: 'tree' }>, files: SandboxFiles): Promise<string> {
  try {
    switch (look.op) {
      case 'read': {
        const { start, end } = look
        const range = { ...(start !== undefined && { start }), ...(end !== undefined && { end }) }
        return described(look.op, await files.read(look.path, range))
      }
      case 'stat':
        return described(look.op, await files.stat(look.path))
      case 'list':
        return described(look.op, await files.list(look.path))
      case 'search':
        return described(look.op, await files.search(look.query))
    }
  } catch (error) {
    return refused(error)
  }
}

function described(op: Seen['op'], result: unknown): string {
  if (op === 'read') return sha256(result as Uint8Array)
  if (op !== 'stat') return digestOf(result as Json)
  const { kind, size } = (result ?? {}) as { kind?: string; size?: number }
  // The size of a folder is the file system's own affair, and times are nobody's.
  return digestOf(kind === undefined ? null : { kind, size: kind === 'file' ? (size as number) : null })
}

function refused(error: unknown): string {
  return error instanceof RathError ? `refused: ${error.code}` : 'refused'
}

function plainQuery({ signal: _, ...query }: SearchQuery): Omit<SearchQuery, 'signal'> {
  return JSON.parse(JSON.stringify(query))
}
