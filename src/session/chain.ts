import type { Digest } from '../base/digest.ts'
import type { Chunk, ChunkBody } from './chunk.ts'
import { chunkText } from './chunk-text.ts'
import { emptyFold, type Fold, fold } from './fold.ts'
import { identify, identifyText, identityOf, writeBody } from './identity.ts'
import type { KeptView } from './message.ts'
import { withField } from './parse.ts'
import { perceive, stateAfter } from './state.ts'

/**
 * A chunk in its chain. The body's fields are its own, frozen properties; how it hangs together with the others is
 * private. `jump` points further back so that any index is reached in O(log n) steps (Myers' skew-binary list),
 * while adding a chunk stays O(1) in time and memory however long the chain is.
 */
class Link {
  #previous: LinkedChunk | undefined
  #jump: LinkedChunk | undefined
  /** -1 until it is linked. */
  #index = -1
  #fold: Fold = emptyFold
  #id: Digest | undefined
  /** The id was given with the chunk and not computed of it. */
  #claimed = false
  /** This chunk and all before it were made in this process, or have been found to match their ids. */
  #proven = false
  /** Who has said that it keeps this chunk and all before it; see `markKept`. */
  #keeper: object | undefined
  #state: Digest | undefined
  /** See `keepView`. */
  #view: KeptView | undefined

  /** Freezes a link that has its fields and hangs it behind another. */
  static attach(
    link: Link & ChunkBody,
    previous: LinkedChunk | undefined,
    id: Digest | undefined,
  ): LinkedChunk {
    Object.freeze(link)
    if (previous) {
      link.#previous = previous
      link.#index = previous.#index + 1
      link.#jump = Link.#farther(previous)
    } else link.#index = 0
    link.#fold = fold(previous ? previous.#fold : emptyFold, link)
    link.#id = id
    link.#claimed = id !== undefined
    link.#proven = id === undefined && (previous === undefined || previous.#proven)
    return link
  }

  /** A link hangs in a chain only with its fields: it is a chunk then. */
  static isAttached(link: Link): link is LinkedChunk {
    return link.#index >= 0
  }

  static of(chunk: Chunk): LinkedChunk {
    if (#index in chunk) return chunk
    throw new TypeError('This chunk was not made by a session.')
  }

  get index(): number {
    return this.#index
  }

  get text(): string {
    return Link.isAttached(this) ? chunkText(this) : ''
  }

  get id(): Digest {
    let id = this.#id
    if (id !== undefined) return id
    for (const link of this.#without(link => link.#id)) {
      const previous = link.#previous
      id = identify(link, previous === undefined ? undefined : previous.#id)
      link.#id = id
    }
    return id ?? unlinked()
  }

  get state(): Digest {
    let state = this.#state
    if (state !== undefined) return state
    for (const link of this.#without(link => link.#state)) {
      const perceived = perceive(link, link.#fold.turn, () => backwards(link.#previous))
      state = stateAfter(link.#previous, link, perceived)
      link.#state = state
    }
    return state ?? unlinked()
  }

  /** The links up to this one that lack a digest, oldest first; a loop, because a chain can be a million long. */
  #without(digest: (link: Link) => Digest | undefined): LinkedChunk[] {
    const links: LinkedChunk[] = []
    let link: LinkedChunk | undefined = Link.isAttached(this) ? this : undefined
    while (link && digest(link) === undefined) {
      links.push(link)
      link = link.#previous
    }
    return links.reverse()
  }

  toJSON(): object {
    return { ...(this as object), id: this.id }
  }

  static previous(link: Link): LinkedChunk | undefined {
    return link.#previous
  }

  static fold(link: Link): Fold {
    return link.#fold
  }

  static keeper(link: Link): object | undefined {
    return link.#keeper
  }

  static setKeeper(link: Link, keeper: object): void {
    let here: Link | undefined = link
    while (here && here.#keeper !== keeper) {
      here.#keeper = keeper
      here = here.#previous
    }
  }

  static view(link: Link): KeptView | undefined {
    return link.#view
  }

  static setView(link: Link, view: KeptView): void {
    link.#view = view
  }

  static claimed(link: Link): boolean {
    return link.#claimed
  }

  static proven(link: Link): boolean {
    return link.#proven
  }

  /** `text` is the chunk's own JSON where it is known; without it, it is written again. */
  static prove(link: LinkedChunk, text?: string): Digest | undefined {
    if (link.#proven) return undefined
    const previous = link.#previous
    if (link.#claimed) {
      const expected = identifyText(text ?? writeBody(link), previous === undefined ? null : previous.id)
      if (expected !== link.#id) return expected
    }
    if (previous === undefined || previous.#proven) link.#proven = true
    return undefined
  }

  static disprove(link: Link): void {
    link.#proven = false
  }

  static knownId(link: Link): Digest | undefined {
    return link.#id
  }

  static write(link: LinkedChunk): string {
    const text = writeBody(link)
    link.#id ??= identifyText(text, link.#previous?.id ?? null)
    return text
  }

  static #farther(previous: LinkedChunk): LinkedChunk {
    const jump = previous.#jump
    const second = jump === undefined ? undefined : jump.#jump
    if (jump === undefined || second === undefined) return previous
    return previous.#index - jump.#index === jump.#index - second.#index ? second : previous
  }

  static at(link: LinkedChunk, index: number): LinkedChunk {
    let here = link
    while (here.#index > index) {
      const jump = here.#jump
      here = jump && jump.#index >= index ? jump : (here.#previous as LinkedChunk)
    }
    return here
  }
}

/** What a chunk is to this file: the same object, with its place in the chain. */
type LinkedChunk = Chunk & Link

function unlinked(): never {
  throw new TypeError('A chunk has no digest before it is linked.')
}

/** Adds a chunk behind `previous`. `id` is given only when the chunk was recorded before, and is then a claim to verify. */
export function link(previous: Chunk | undefined, body: ChunkBody, id?: Digest): Chunk {
  // A body that was parsed for this purpose is a link already; any other is copied into one.
  const fresh = body instanceof Link && !Link.isAttached(body) ? body : Object.assign(new Link(), body)
  return Link.attach(fresh, previous && Link.of(previous), id)
}

/** Where a chunk's fields can be written before it is linked; see `parseChunk`. */
export function newLink(): Record<string, unknown> {
  const fields: object = new Link()
  return fields as Record<string, unknown>
}

/** The same content behind another chunk: it keeps its branch and says where it came from. */
export function relink(previous: Chunk | undefined, chunk: Chunk): Chunk {
  return copyOf(chunk, link(previous, withField(chunk, { origin: identityOf(chunk) })))
}

/** What chunks were copied from that nothing has shown to be true yet. */
const sources = new WeakMap<Chunk, Chunk>()

/** A copy is no better than what it was made of. */
export function copyOf(source: Chunk, copy: Chunk): Chunk {
  if (Link.proven(Link.of(source))) return copy
  Link.disprove(Link.of(copy))
  sources.set(copy, source)
  return copy
}

/** A chunk whose content does not give the id it is recorded under. */
export interface Mismatch {
  /** From where on the chain is not to be trusted: that chunk, or a copy of it or of one behind it. */
  readonly at: Chunk
  readonly chunk: Chunk
  readonly expected: Digest
}

/**
 * The first chunk that is not what its id says, among those that nothing has shown to be true in this process: made here, or looked at before.
 * Each is looked at once, so that a conversation that goes on pays nothing for its history.
 */
export function mismatchIn(tip: Chunk | undefined): Mismatch | undefined {
  const unproven: Chunk[] = []
  for (let here = tip; here && !Link.proven(Link.of(here)); here = previousOf(here)) unproven.push(here)
  for (const chunk of unproven.reverse()) {
    const source = sources.get(chunk)
    const before = source && mismatchIn(source)
    if (before) return { ...before, at: chunk }
    const expected = Link.prove(Link.of(chunk))
    if (expected !== undefined) return { at: chunk, chunk, expected }
  }
  return undefined
}

/** Says what `text`, from which a chunk was read, says about its id; where it says nothing good, `mismatchIn` finds out. */
export function proveFrom(text: string, chunk: Chunk): void {
  Link.prove(Link.of(chunk), text)
}

export function isLinked(value: unknown): value is Chunk {
  return value instanceof Link && Link.isAttached(value)
}

export function previousOf(chunk: Chunk): Chunk | undefined {
  return Link.previous(Link.of(chunk))
}

export function foldAt(tip: Chunk | undefined): Fold {
  return tip ? Link.fold(Link.of(tip)) : emptyFold
}

/** The chunk's id if it has been computed or claimed; never computes it. */
export function knownId(chunk: Chunk): Digest | undefined {
  return Link.knownId(Link.of(chunk))
}

/** The chunk's own JSON text. Its id, if nobody has asked for it yet, is made of the same text. */
export function writeChunk(chunk: Chunk): string {
  return Link.write(Link.of(chunk))
}

/**
 * A store's note to itself that it has a chain: a field is cheaper than a table of weak references to a million chunks. A chunk
 * remembers the last keeper only; one that is forgotten looks again.
 */
export function markKept(tip: Chunk | undefined, keeper: object): void {
  if (tip) Link.setKeeper(Link.of(tip), keeper)
}

export function isKeptBy(chunk: Chunk, keeper: object): boolean {
  return Link.keeper(Link.of(chunk)) === keeper
}

/**
 * Keeps what a model is shown of a chain up to its tip, so that whoever continues from there, on whatever branch, looks only at what is
 * new. It is a field for the reason that `markKept` gives, and lives as long as the chunk.
 */
export function keepView(tip: Chunk, view: KeptView): void {
  Link.setView(Link.of(tip), view)
}

export function viewKeptAt(tip: Chunk): KeptView | undefined {
  return Link.view(Link.of(tip))
}

/** Whether a chunk's id was read from somewhere and not computed here. */
export function isClaimed(chunk: Chunk): boolean {
  return Link.claimed(Link.of(chunk))
}

export function lengthOf(tip: Chunk | undefined): number {
  return tip ? tip.index + 1 : 0
}

/** The chunk at `index` of the chain that ends in `tip`, in O(log n). */
export function chunkAt(tip: Chunk, index: number): Chunk {
  return Link.at(Link.of(tip), index)
}

/** The chunks of a chain from `start` to its tip, oldest first, in time linear in their number. */
export function chunksFrom(tip: Chunk | undefined, start: number): Chunk[] {
  const chunks: Chunk[] = new Array(Math.max(0, lengthOf(tip) - start))
  for (let here = tip, i = chunks.length - 1; i >= 0; i--) {
    chunks[i] = here as Chunk
    here = previousOf(here as Chunk)
  }
  return chunks
}

/** The chunks of a chain from its tip to its first, one step at a time. */
export function* backwards(tip: Chunk | undefined): Generator<Chunk, void, undefined> {
  for (let here = tip; here; here = previousOf(here)) yield here
}
