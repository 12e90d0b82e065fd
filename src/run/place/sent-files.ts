import { isUtf8 } from 'node:buffer'
import { readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Digest, sha256 } from '../../base/digest.ts'
import { RathError } from '../../base/errors.ts'
import { newId } from '../../base/ids.ts'
import { Breath } from '../../sandbox/workspace/breath.ts'
import type { ObjectStore } from '../../sandbox/workspace/objects.ts'
import { Arrival, packsOf } from '../../sandbox/workspace/travel.ts'
import type { Store } from '../../store/spec.ts'
import { privateFolder } from './home.ts'

/** Packs that a tree needs besides those of the layers before: together they hold all of it. */
interface Layer {
  readonly tree: Digest
  readonly packs: readonly Digest[]
  readonly bytes: number
}

/** More layers than this are made fewer, so that a chunk never names many packs. */
const mostLayers = 12
/** Milliseconds for which nobody asks again; far less than `gc` leaves what was written alone. */
const surelyThere = 5 * 60 * 1000
/** Trees whose layers are remembered. */
const mostTrees = 1_000

/** What a file is known to begin with, so that only what differs is sent. */
export interface Near {
  /** Trees that were sent before, the nearest first. */
  readonly trees: readonly (Digest | undefined)[]
  /** What the session's record says was sent, perhaps by another process. */
  readonly known?: { readonly tree: Digest | undefined; readonly packs: readonly Digest[] }
  /** A folder that sessions have in common: where the last of them was, the next begins. */
  readonly origin: string | undefined
}

/**
 * Files of sessions in the store: after a tree is kept here, what the store does not have of it goes there as packs, and the chunk that names the
 * tree names them too, so that the store keeps them as long as the chunk. On a machine that does not have a tree, they are fetched.
 */
export class SentFiles {
  readonly #store: () => Promise<Store>
  readonly #objects: () => Promise<ObjectStore>
  readonly #home: string
  readonly #layers = new Map<Digest, readonly Layer[]>()
  /** The first sending of each origin, which the others wait for: they differ from it by little. */
  readonly #first = new Map<string, Promise<unknown>>()
  /** When the store was last seen to have a pack. */
  readonly #keptAt = new Map<Digest, number>()
  readonly #bringing = new Map<Digest, Promise<void>>()

  /** `home` is where it remembers what was sent, for the next process. */
  constructor(store: () => Promise<Store>, objects: () => Promise<ObjectStore>, home: string) {
    this.#store = store
    this.#objects = objects
    this.#home = home
  }

  /**
   * Sends trees, and returns all packs that they need; undefined where the store ends with this process. When it resolves, the store has them as
   * durably as it has chunks.
   */
  async send(
    trees: readonly Digest[],
    near: Near,
    signal?: AbortSignal,
  ): Promise<readonly Digest[] | undefined> {
    const store = await this.#store()
    if (store.isTemporary) return undefined
    const wanted = [...new Set(trees)]
    const known = near.trees.some(tree => tree !== undefined && this.#layers.has(tree))
    const { origin } = near
    const first = known || origin === undefined ? undefined : this.#first.get(origin)
    await first?.catch(() => {})
    const sending = this.#send(wanted, near, store, signal)
    if (!known && first === undefined && origin !== undefined) this.#first.set(origin, sending)
    return sending
  }

  /** Fetches trees that are not here. */
  async bring(trees: readonly Digest[], packs: readonly Digest[], signal?: AbortSignal): Promise<void> {
    const objects = await this.#objects()
    const missing = trees.filter(tree => !objects.has(tree))
    const [tree] = missing
    if (tree === undefined) return
    const bringing = this.#bringing.get(tree) ?? this.#bring(missing, packs, objects, signal)
    this.#bringing.set(tree, bringing)
    try {
      await bringing
    } finally {
      this.#bringing.delete(tree)
    }
  }

  async #bring(
    trees: readonly Digest[],
    packs: readonly Digest[],
    objects: ObjectStore,
    signal: AbortSignal | undefined,
  ): Promise<void> {
    const { blobs, url } = await this.#store()
    using arrival = new Arrival(objects, trees)
    const breath = new Breath(signal)
    for (const pack of [...new Set(packs)].reverse()) {
      if (arrival.isWhole) break
      await arrival.add(await blobs.get(pack), pack, breath)
    }
    if (!arrival.isWhole) {
      const [tree = ''] = trees
      throw new RathError(
        'unknown-blob',
        `The files of tree ${tree.slice(0, 12)} are neither on this machine nor in ${url}: they were kept before files were sent to stores, with another store, or in an imported bundle.`,
        { data: { trees: [...trees], missing: arrival.missing.slice(0, 20) } },
      )
    }
    arrival.finish()
  }

  async #send(
    trees: readonly Digest[],
    near: Near,
    store: Store,
    signal: AbortSignal | undefined,
  ): Promise<readonly Digest[]> {
    const objects = await this.#objects()
    let layers = withFewer(this.#nearest(near, store))
    // What was pruned here cannot be compared with.
    while (layers.length > 0 && !objects.has((layers.at(-1) as Layer).tree)) layers = layers.slice(0, -1)
    // Whoever they were sent for may be gone, and they with it; those that are there stay while this goes on.
    if (!(await this.#isThere(packsIn(layers), store))) layers = []
    const isHeldBack = (content: Buffer) => {
      const text = content.toString(isUtf8(content) ? 'utf8' : 'latin1')
      return store.clean(text) !== text
    }
    const options = { isHeldBack, breath: new Breath(signal) }
    const packs: Digest[] = []
    let bytes = 0
    for await (const pack of packsOf(objects, trees, layers.at(-1)?.tree, options)) {
      const id = await store.blobs.put(pack)
      if (id !== sha256(pack)) throw new Error('the store changed a pack of files while it took out secrets')
      packs.push(id)
      this.#keptAt.set(id, Date.now())
      bytes += pack.length
    }
    const tree = trees.at(-1) as Digest
    const all = packs.length > 0 ? [...layers, { tree, packs, bytes }] : layers
    for (const one of trees) this.#remember(one, all)
    this.#keep(near, store, all)
    return packsIn(all)
  }

  async #isThere(packs: readonly Digest[], store: Store): Promise<boolean> {
    const now = Date.now()
    const old = packs.filter(pack => (this.#keptAt.get(pack) ?? 0) < now - surelyThere)
    if (old.length === 0) return true
    if (!(await isKept(store, old))) return false
    for (const pack of old) this.#keptAt.set(pack, now)
    return true
  }

  #nearest({ trees, known: recorded, origin }: Near, store: Store): readonly Layer[] {
    for (const tree of trees) {
      const known = tree === undefined ? undefined : this.#layers.get(tree)
      if (known !== undefined) return known
    }
    if (recorded?.tree !== undefined && recorded.packs.length > 0 && recorded.packs.length < 2 * mostLayers)
      return [{ tree: recorded.tree, packs: recorded.packs, bytes: Number.MAX_SAFE_INTEGER }]
    if (origin === undefined) return []
    try {
      return JSON.parse(readFileSync(this.#fileOf(origin, store), 'utf8')) as readonly Layer[]
    } catch {
      return []
    }
  }

  #remember(tree: Digest, layers: readonly Layer[]): void {
    this.#layers.delete(tree)
    this.#layers.set(tree, layers)
    for (const old of this.#layers.keys()) {
      if (this.#layers.size <= mostTrees) break
      this.#layers.delete(old)
    }
  }

  #keep({ origin }: Near, store: Store, layers: readonly Layer[]): void {
    if (origin === undefined) return
    const path = this.#fileOf(origin, store)
    const temporary = `${path}.${newId()}`
    try {
      privateFolder(join(this.#home, 'sent'))
      writeFileSync(temporary, JSON.stringify(layers), { mode: 0o600 })
      renameSync(temporary, path)
    } catch {
      // What is not remembered is sent again.
    }
  }

  #fileOf(origin: string, store: Store): string {
    return join(this.#home, 'sent', `${sha256(`${store.url}\n${origin}`).slice(0, 32)}.json`)
  }
}

function packsIn(layers: readonly Layer[]): Digest[] {
  return [...new Set(layers.flatMap(({ packs }) => packs))]
}

/** Leaves out the newest layers, which are then sent again as one, up to one that is larger than what follows it by far. */
function withFewer(layers: readonly Layer[]): readonly Layer[] {
  if (layers.length < mostLayers) return layers
  let bytes = 0
  let kept = layers.length
  while (kept > 0 && (kept === layers.length || (layers[kept - 1] as Layer).bytes <= 2 * bytes)) {
    kept--
    bytes += (layers[kept] as Layer).bytes
  }
  return layers.slice(0, kept)
}

async function isKept({ blobs }: Store, packs: readonly Digest[]): Promise<boolean> {
  if (blobs.keep) return (await blobs.keep(packs)) === packs.length
  for (const pack of packs) if (!(await blobs.has(pack))) return false
  return true
}
