import type { Digest } from '../base/digest.ts'
import { RathError } from '../base/errors.ts'
import { sessionsInside } from '../run/graph/rows.ts'
import type { Chunk } from '../session/chunk.ts'
import type { Session } from '../session/session.ts'
import type { Store } from '../store/spec.ts'
import { bringFiles } from './kept-files.ts'
import { LinesOfWork } from './lines-of-work.ts'

/** Finds sessions that a merge took files from and whose chunks it left out. */
export type FindSession = (id: string) => Promise<Session | undefined>

/** Their files are fetched with them. */
export function sessionsIn(store: Store, workspaces?: string): FindSession {
  return async id => {
    try {
      const session = await store.sessions.get(id)
      await bringFiles(session, store, workspaces)
      return session
    } catch (error) {
      if (error instanceof RathError && error.code === 'unknown-session') return undefined
      throw error
    }
  }
}

/** The files at one moment, and what made them so. Every tree has its parents before it in `FileHistory.states`. */
export interface FileState {
  readonly tree: Digest
  readonly cause: Cause
  readonly parents: readonly FileState[]
}

/**
 * `start`: the files as the first call found them. `call`: a tool call. `merge`: files were joined. `drift`: somebody else changed them, and
 * the chunk is the one that noticed.
 */
export type Cause =
  | { readonly kind: 'start' }
  | { readonly kind: 'call'; readonly chunk: Chunk<'tool-result'>; readonly lines: LinesOfWork }
  | {
      readonly kind: 'merge'
      readonly chunk: Chunk<'merge'>
      readonly lines: LinesOfWork
      /** Files of sessions that could not be found are in it. */
      readonly isIncomplete: boolean
    }
  | { readonly kind: 'drift'; readonly chunk: Chunk; readonly lines: LinesOfWork }

export interface FileHistory {
  readonly states: readonly FileState[]
  /** The files as the session left them; undefined when it has none. */
  readonly last: FileState | undefined
}

/** Every state of the files that a session recorded, through merges. O(chunks). */
export async function fileHistory(session: Session, find?: FindSession): Promise<FileHistory> {
  const states: FileState[] = []
  const loaded = new Map<string, Promise<FileState | undefined>>()
  const last = await new HistoryReader(session, states, loaded, find).read()
  return { states, last }
}

interface Outer {
  readonly files: FileState
  readonly chunks: ReadonlySet<Digest>
}

class HistoryReader {
  readonly #session: Session
  readonly #lines: LinesOfWork
  readonly #states: FileState[]
  readonly #loaded: Map<string, Promise<FileState | undefined>>
  readonly #find: FindSession | undefined
  /** Of a session inside a tool: the files as its caller knows them, and the chunks that it shares with its caller. */
  readonly #outer: Outer | undefined
  #ids: ReadonlySet<Digest> | undefined
  /** The files after each chunk, on its own line of work. */
  readonly #after: (FileState | undefined)[] = []

  constructor(
    session: Session,
    states: FileState[],
    loaded: Map<string, Promise<FileState | undefined>>,
    find: FindSession | undefined,
    outer?: Outer,
  ) {
    this.#outer = outer
    this.#session = session
    this.#lines = new LinesOfWork(session)
    this.#states = states
    this.#loaded = loaded
    this.#find = find
  }

  async read(): Promise<FileState | undefined> {
    this.#loaded.set(this.#session.id, Promise.resolve(undefined))
    for (const chunk of this.#lines.chunks) this.#after.push(await this.#step(chunk))
    const last = this.#after.at(-1)
    this.#loaded.set(this.#session.id, Promise.resolve(last))
    return last
  }

  #step(chunk: Chunk): Promise<FileState | undefined> | FileState | undefined {
    if (this.#outer?.chunks.has(chunk.id)) return this.#outer.files
    const place = this.#lines.before(chunk.index)
    const before = place < 0 ? this.#outer?.files : this.#after[place]
    switch (chunk.kind) {
      case 'placement':
        return chunk.workspace?.tree === undefined
          ? this.#outer?.files
          : this.#meet(chunk.workspace.tree, this.#outer?.files, chunk)
      case 'tool-result':
        return this.#call(chunk, before)
      case 'merge':
        return this.#merge(chunk)
      default:
        return before
    }
  }

  async #call(chunk: Chunk<'tool-result'>, before: FileState | undefined): Promise<FileState | undefined> {
    const { tree } = chunk
    if (tree === undefined) return before
    let found = this.#meet(chunk.before ?? before?.tree ?? tree, before, chunk)
    // What a sub-agent did inside is its work, and not that of whoever called it.
    for (const id of sessionsInside(chunk)) found = (await this.#inside(id, found)) ?? found
    return tree === found.tree ? found : this.#add(tree, { kind: 'call', chunk, lines: this.#lines }, [found])
  }

  async #merge(chunk: Chunk<'merge'>): Promise<FileState | undefined> {
    const sides = this.#lines.sidesOf(chunk.index)
    const inChain = sides.flatMap(side => this.#after[side.last] ?? [])
    const { tree } = chunk
    if (tree === undefined) return inChain.at(-1) ?? this.#after[chunk.index - 1]
    const known = new Set(sides.map(side => side.session))
    // `ours` and `theirs` take no files of the sides that they leave out.
    const isFixed = chunk.policy === 'ours' || chunk.policy === 'theirs'
    const others = isFixed ? [] : chunk.branches.filter(({ session }) => !known.has(session))
    const elsewhere = await Promise.all(others.map(({ session }) => this.#load(session)))
    const isIncomplete = elsewhere.includes(undefined)
    const base = isIncomplete ? this.#after[this.#lines.baseOf(chunk)] : undefined
    const parents = [...inChain, ...elsewhere, base].filter(state => state !== undefined)
    const same = parents.find(parent => parent.tree === tree)
    if (same && parents.length === 1) return same
    return this.#add(tree, { kind: 'merge', chunk, lines: this.#lines, isIncomplete }, parents)
  }

  async #inside(id: string, files: FileState): Promise<FileState | undefined> {
    const session = this.#loaded.has(id) ? undefined : await this.#find?.(id)
    if (session === undefined) return undefined
    this.#ids ??= new Set(this.#lines.chunks.map(chunk => chunk.id))
    const outer = { files, chunks: this.#ids }
    return new HistoryReader(session, this.#states, this.#loaded, this.#find, outer).read()
  }

  #load(id: string): Promise<FileState | undefined> {
    const known = this.#loaded.get(id)
    if (known) return known
    const loading = (this.#find?.(id) ?? Promise.resolve(undefined)).then(
      session => session && new HistoryReader(session, this.#states, this.#loaded, this.#find).read(),
    )
    this.#loaded.set(id, loading)
    return loading
  }

  /** The files that a chunk found: those known, or what somebody made of them since. */
  #meet(tree: Digest, known: FileState | undefined, chunk: Chunk): FileState {
    if (known === undefined) return this.#add(tree, { kind: 'start' }, [])
    return known.tree === tree
      ? known
      : this.#add(tree, { kind: 'drift', chunk, lines: this.#lines }, [known])
  }

  #add(tree: Digest, cause: Cause, parents: readonly FileState[]): FileState {
    const state = { tree, cause, parents }
    this.#states.push(state)
    return state
  }
}
