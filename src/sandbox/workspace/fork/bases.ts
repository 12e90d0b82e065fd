import type { ForkBase, Forker, Frozen } from './method.ts'

/** A base for as long as somebody needs it. */
export interface Lease {
  readonly frozen: Frozen
  release(): Promise<void>
}

interface Entry {
  readonly made: Promise<Frozen>
  /** Branches, and bases that are layers over it. */
  users: number
  /** The base that this one is a layer over. */
  under?: Lease
}

/** So many bases that nobody needs stay, for the next branch of the same files. */
const mostIdle = 4

/** Bases by tree: each is made once, however many ask at once, and stays while it is needed. */
export class Bases {
  readonly #forker: Forker
  /** The one that was let go of longest ago comes first. */
  readonly #entries = new Map<string, Entry>()

  constructor(forker: Forker) {
    this.#forker = forker
  }

  use(base: ForkBase): Promise<Lease> {
    return this.#lease(base.tree, this.#entries.get(base.tree) ?? this.#add(base))
  }

  #add(base: ForkBase): Entry {
    const near = base.delta && base.near !== undefined ? this.#entries.get(base.near) : undefined
    const lease = near && this.#lease(base.near as string, near).catch(() => undefined)
    const made = Promise.resolve(lease).then(async under => {
      try {
        const frozen = await this.#forker.freeze(base, under?.frozen)
        if (frozen.on && under) entry.under = under
        return frozen
      } finally {
        if (!entry.under) await under?.release()
      }
    })
    const entry: Entry = { made, users: 0 }
    this.#entries.set(base.tree, entry)
    // What could not be made is tried again by the next who asks.
    made.catch(() => this.#entries.delete(base.tree))
    return entry
  }

  async #lease(tree: string, entry: Entry): Promise<Lease> {
    entry.users++
    const frozen = await entry.made
    let released: Promise<void> | undefined
    return {
      frozen,
      release: () => {
        released ??= this.#release(tree, entry)
        return released
      },
    }
  }

  async #release(tree: string, entry: Entry): Promise<void> {
    entry.users--
    this.#entries.delete(tree)
    this.#entries.set(tree, entry)
    const idle = [...this.#entries].filter(([, { users }]) => users === 0)
    for (const [old, { made, under }] of idle.slice(0, Math.max(0, idle.length - mostIdle))) {
      this.#entries.delete(old)
      await (await made).remove()
      await under?.release()
    }
  }
}
