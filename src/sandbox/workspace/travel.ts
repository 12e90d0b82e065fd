import { deflateSync, inflateSync } from 'node:zlib'
import type { Digest } from '../../base/digest.ts'
import { RathError } from '../../base/errors.ts'
import { ObjectBatch } from './batch.ts'
import type { Breath } from './breath.ts'
import { emptyBlob, emptyTree, type ObjectKind } from './object.ts'
import type { ObjectStore } from './objects.ts'
import { childrenOf, objectsSince } from './tree.ts'

/** Bytes of a pack; one with more holds a single file. */
const mostBytes = 16 * 1024 * 1024

/**
 * Objects on their way to another machine, several in one piece of bytes: a line that says what it is, and for each object a letter for its
 * kind, the lengths of its content and of what follows, and the content, deflated. Ids are not written: whoever reads computes them. Of an object that
 * is held back only the id is there.
 */
const beginning = Buffer.from('openrath objects 1\n')
const letters = { blob: 0x62, tree: 0x74 } as const
const heldBack = 0x2d

/** What trees need and `base` does not hold in the same place, in packs, what something is made of before it. O(differences). */
export async function* packsOf(
  objects: ObjectStore,
  trees: readonly Digest[],
  base: Digest | undefined,
  options: { readonly isHeldBack: (content: Buffer) => boolean; readonly breath: Breath },
): AsyncGenerator<Buffer> {
  const seen = new Set<Digest>()
  let waiting: Buffer[] = []
  let bytes = 0
  for (const tree of trees) {
    for (const { id, kind } of objectsSince(objects, tree, base, seen)) {
      if (options.breath.due) await options.breath.take()
      const piece = written(id, kind, objects.read(id, kind), options.isHeldBack)
      if (waiting.length > 0 && bytes + piece.length > mostBytes) {
        yield Buffer.concat([beginning, ...waiting])
        waiting = []
        bytes = 0
      }
      waiting.push(piece)
      bytes += piece.length
    }
  }
  if (waiting.length > 0) yield Buffer.concat([beginning, ...waiting])
}

function written(
  id: Digest,
  kind: ObjectKind,
  content: Buffer,
  isHeldBack: (content: Buffer) => boolean,
): Buffer {
  const isSent = kind === 'tree' || !isHeldBack(content)
  const body = isSent ? deflateSync(content, { level: 1 }) : Buffer.from(id, 'hex')
  const header = Buffer.alloc(9)
  header.writeUInt8(isSent ? letters[kind] : heldBack, 0)
  header.writeUInt32BE(isSent ? content.length : 0, 1)
  header.writeUInt32BE(body.length, 5)
  return Buffer.concat([header, body])
}

/**
 * Takes packs in, newest first, until nothing that came needs anything that is neither here nor came too. `finish` then puts all of it
 * into the store at once: a tree that is here is whole, but for what was held back.
 */
export class Arrival implements Disposable {
  readonly #objects: ObjectStore
  readonly #batch: ObjectBatch
  readonly #came = new Set<Digest>()
  readonly #missing: Set<Digest>
  #isDone = false

  constructor(objects: ObjectStore, trees: readonly Digest[]) {
    this.#objects = objects
    this.#batch = new ObjectBatch(objects, { isPacked: true })
    this.#missing = new Set(trees.filter(tree => !this.#isHere(tree)))
  }

  get isWhole(): boolean {
    return this.#missing.size === 0
  }

  get missing(): readonly Digest[] {
    return [...this.#missing]
  }

  async add(pack: Uint8Array, name: Digest, breath: Breath): Promise<void> {
    for (const { kind, content, id } of readPack(pack, name)) {
      if (breath.due) await breath.take()
      const came = kind === 'held-back' ? id : this.#batch.put(kind, content)
      this.#came.add(came)
      this.#missing.delete(came)
      if (kind === 'tree') {
        for (const child of childrenOf(this.#objects, came, content)) {
          // What is empty is known without being sent, and a store of git's has it all the same.
          if (child === emptyBlob) this.#batch.put('blob', nothing)
          else if (child === emptyTree) this.#batch.put('tree', nothing)
          else if (!this.#came.has(child) && !this.#isHere(child)) this.#missing.add(child)
        }
      }
    }
  }

  finish(): void {
    this.#isDone = true
    this.#batch.finish()
  }

  [Symbol.dispose](): void {
    if (!this.#isDone) this.#batch.discard()
  }

  #isHere(id: Digest): boolean {
    return id === emptyTree || id === emptyBlob || this.#objects.has(id)
  }
}

const nothing = Buffer.alloc(0)

type Piece =
  | { readonly kind: ObjectKind; readonly content: Buffer; readonly id?: undefined }
  | { readonly kind: 'held-back'; readonly id: Digest; readonly content?: undefined }

/** What a store gives back is checked like anything from outside: lengths before they are used, and ids by whoever keeps it. */
function* readPack(pack: Uint8Array, name: Digest): Generator<Piece> {
  const bytes = Buffer.from(pack.buffer, pack.byteOffset, pack.byteLength)
  const damaged = (why: string, cause?: unknown) =>
    new RathError(
      'store-corrupt',
      `The pack of files ${name} is damaged: ${why}. Restore the store from a backup.`,
      { cause, data: { pack: name } },
    )
  if (!bytes.subarray(0, beginning.length).equals(beginning)) throw damaged('it does not begin as one does')
  for (let at = beginning.length; at < bytes.length; ) {
    if (at + 9 > bytes.length) throw damaged('it ends in the middle of an object')
    const letter = bytes.readUInt8(at)
    const length = bytes.readUInt32BE(at + 1)
    const end = at + 9 + bytes.readUInt32BE(at + 5)
    if (end > bytes.length) throw damaged('it ends in the middle of an object')
    const body = bytes.subarray(at + 9, end)
    at = end
    if (letter === heldBack) {
      if (body.length !== 32) throw damaged('an id in it is too short')
      yield { kind: 'held-back', id: body.toString('hex') }
      continue
    }
    const kind = letter === letters.blob ? 'blob' : letter === letters.tree ? 'tree' : undefined
    if (kind === undefined) throw damaged(`an object in it has the kind ${letter}`)
    let content: Buffer
    try {
      content = inflateSync(body, { maxOutputLength: Math.max(1, length) })
    } catch (error) {
      throw damaged((error as Error).message, error)
    }
    if (content.length !== length) throw damaged('an object in it is shorter than it says')
    yield { kind, content }
  }
}
