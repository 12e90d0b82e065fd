import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { removeFolder } from '../../host/remove-folder.ts'
import type { Branch, ForkBase, Forker, ForkMethod, Frozen } from './method.ts'
import { OverlayMounts } from './overlay-mounts.ts'
import { tryOverlay } from './overlay-probe.ts'
import { changesOf } from './upper-changes.ts'

/** Each branch is an empty layer over the base: it costs a mount, and later what is written. */
export const overlay: ForkMethod = {
  name: 'overlay',
  probe: tryOverlay,
  async start(area) {
    for (const name of ['b', 'f', 'm']) await mkdir(join(area, name))
    return new OverlayForker(area)
  },
}

/** Looking up a name costs more with every layer that does not have it; past so many a base is written whole. */
const mostLayers = 30

class Layers implements Frozen {
  /** Folders of the area, the uppermost first. */
  readonly names: readonly string[]
  readonly on?: Layers
  readonly #remove: (top: string) => Promise<void>

  constructor(top: string, on: Layers | undefined, remove: (top: string) => Promise<void>) {
    this.names = [top, ...(on?.names ?? [])]
    if (on) this.on = on
    this.#remove = remove
  }

  remove(): Promise<void> {
    return this.#remove(this.names[0] as string)
  }
}

class OverlayForker implements Forker {
  readonly #area: string
  #starting: Promise<OverlayMounts> | undefined
  #mounts: OverlayMounts | undefined
  #count = 0

  constructor(area: string) {
    this.#area = area
  }

  async freeze(base: ForkBase, near?: Frozen): Promise<Frozen> {
    const id = `b${this.#count++}`
    const name = `b/${id}`
    const on = near instanceof Layers && near.names.length < mostLayers ? near : undefined
    try {
      if (on && base.delta) {
        await this.#writeLayer(id, name, on, base.delta.bind(base))
        return new Layers(name, on, top => this.#remove(top))
      }
      await mkdir(join(this.#area, name))
      await base.fill(join(this.#area, name))
      return new Layers(name, undefined, top => this.#remove(top))
    } catch (error) {
      await this.#remove(name)
      throw error
    }
  }

  async branch(base: Frozen): Promise<Branch> {
    const { names } = base as Layers
    const id = String(this.#count++)
    const place = join(this.#area, 'f', id)
    const mounts = await this.#live()
    await mkdir(place)
    try {
      await mounts.mount(id, names, { files: `f/${id}/u`, work: `f/${id}/w` })
    } catch (error) {
      await removeFolder(place)
      throw error
    }
    const { inside, path } = mounts.at(id)
    return {
      host: { path, inside, enter: mounts.holder.enter },
      changed: async () =>
        changesOf({ upper: join(place, 'u'), base: await mounts.view(names), merged: path }),
      remove: async () => {
        await mounts.unmount(id, 'lazily')
        await removeFolder(place)
      },
    }
  }

  async close(): Promise<void> {
    await this.#mounts?.holder.close()
  }

  abandon(): void {
    this.#mounts?.holder.abandon()
  }

  /** The kernel writes the layer, with its own marks for what is removed. */
  async #writeLayer(
    id: string,
    name: string,
    on: Layers,
    write: (folder: string) => Promise<void>,
  ): Promise<void> {
    const work = `f/${id}`
    const mounts = await this.#live()
    await mounts.mount(id, on.names, { files: name, work })
    try {
      await write(mounts.at(id).path)
      // Refused while a file is open: what is still written to is no base.
      await mounts.unmount(id, 'idle')
    } catch (error) {
      await mounts.unmount(id, 'lazily')
      throw error
    } finally {
      await removeFolder(join(this.#area, work))
    }
  }

  /** Should the holder be ended by somebody, its branches are lost; new ones are made with another. */
  async #live(): Promise<OverlayMounts> {
    if (this.#mounts && !this.#mounts.holder.alive) this.#starting = undefined
    this.#starting ??= OverlayMounts.start(this.#area)
    try {
      this.#mounts = await this.#starting
      return this.#mounts
    } catch (error) {
      this.#starting = undefined
      throw error
    }
  }

  async #remove(name: string): Promise<void> {
    await this.#mounts?.forget(name)
    await removeFolder(join(this.#area, name))
  }
}
