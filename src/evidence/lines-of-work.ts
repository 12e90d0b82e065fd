import { RathError } from '../base/errors.ts'
import type { Chunk } from '../session/chunk.ts'
import type { Session } from '../session/session.ts'

/**
 * How the chunks of a session came one after the other. A merge lays the chunks of its sides behind each other, so a chunk's predecessor
 * in the chain may be one that its author never saw: this tells which it was. O(chunks).
 */
export class LinesOfWork {
  /** Its id. */
  readonly session: string
  readonly chunks: readonly Chunk[]
  readonly #index = new Map<string, number>()
  /** Of the first chunk of each side that does not follow its predecessor in the chain. */
  readonly #before = new Map<number, number>()
  readonly #sides = new Map<number, readonly Side[]>()

  constructor(session: Session) {
    this.session = session.id
    this.chunks = session.chunks.slice()
    for (const [i, { id, origin }] of this.chunks.entries()) {
      this.#index.set(id, i)
      if (origin !== undefined) this.#index.set(origin, i)
    }
    for (const chunk of this.chunks) if (chunk.kind === 'merge') this.#split(chunk)
  }

  /** Where a chunk is, by its id or the one it had before a merge. */
  indexOf(id: string): number {
    const index = this.#index.get(id)
    if (index !== undefined) return index
    throw new RathError(
      'unknown-chunk',
      `Chunk ${id} is not in this session; take an id from session.chunks.`,
    )
  }

  /** Index of the chunk that it followed on its own line; -1 for the first. */
  before(index: number): number {
    return this.#before.get(index) ?? index - 1
  }

  /** The sides of a merge that are in the chain, in the order of the merge. */
  sidesOf(index: number): readonly Side[] {
    return this.#sides.get(index) ?? []
  }

  /** Index of the last chunk that all sides of a merge share; -1 when they share none. */
  baseOf({ ancestor }: Chunk<'merge'>): number {
    return ancestor === null ? -1 : (this.#index.get(ancestor) ?? -1)
  }

  /** The chunks that a chunk's author had before them, oldest first; nothing of branches that were not merged yet. */
  seenBy(index: number): Chunk[] {
    const seen: Chunk[] = []
    let here = this.before(index)
    while (here >= 0) {
      const sides = this.sidesOf(here)
      const first = Math.min(here, ...sides.map(side => side.first))
      // A merge shows all that its sides did.
      for (let i = here; i >= first; i--) seen.push(this.chunks[i] as Chunk)
      here = this.before(first)
    }
    return seen.reverse()
  }

  #split(merge: Chunk<'merge'>): void {
    const base = this.baseOf(merge)
    const sides: Side[] = []
    let next = base + 1
    for (const { head, session, branch, chunks } of merge.branches) {
      const last = head === null ? undefined : this.#index.get(head)
      if (last === undefined || last < next || last >= merge.index) continue
      const first = Math.max(next, last - chunks + 1)
      sides.push({ session, branch, first, last })
      if (first > base + 1) this.#before.set(first, base)
      next = last + 1
    }
    this.#sides.set(merge.index, sides)
  }
}

/** The chunks of one merged session, by their places in the chain. */
export interface Side {
  readonly session: string
  readonly branch: string
  readonly first: number
  readonly last: number
}
