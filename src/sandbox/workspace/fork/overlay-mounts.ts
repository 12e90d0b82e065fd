import { chmod, mkdir, rmdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { Holder, isRoot, quote } from './holder.ts'

/** What an overlay writes to: two folders of one file system. */
export interface Upper {
  readonly files: string
  /** For the kernel's own use. */
  readonly work: string
}

/**
 * Overlays over folders of an area, which are named from there: all options of a mount share 4 KB, and a short name needs no escapes.
 * They are mounted in a file system that only the holder has, so that nothing is found in their place once it has ended.
 */
export class OverlayMounts {
  readonly holder: Holder
  readonly #area: string
  readonly #views = new Map<string, Promise<string>>()

  /** `area` is an absolute path with a folder `m` in it. */
  static async start(area: string): Promise<OverlayMounts> {
    const holder = await Holder.start(area)
    try {
      await holder.run(`mount -t tmpfs -o mode=700,size=1m,nr_inodes=0 tmpfs ${quote(join(area, 'm'))}`)
      return new OverlayMounts(holder, area)
    } catch (error) {
      await holder.close()
      throw error
    }
  }

  private constructor(holder: Holder, area: string) {
    this.holder = holder
    this.#area = area
  }

  /** Where those who enter see a mount, and where this process does. */
  at(id: string): { readonly inside: string; readonly path: string } {
    const inside = join(this.#area, 'm', id)
    return { inside, path: this.holder.view(inside) }
  }

  /** Layers are given from the uppermost down. Without `upper` nobody can write. */
  async mount(id: string, layers: readonly string[], upper?: Upper): Promise<void> {
    const parts = [options(), `lowerdir=${layers.join(':')}`]
    if (upper) {
      // A mount is called by the mode of its uppermost folder.
      const { mode } = await stat(join(this.#area, layers[0] as string))
      await mkdir(join(this.#area, upper.files))
      await chmod(join(this.#area, upper.files), mode & 0o7777)
      await mkdir(join(this.#area, upper.work))
      parts.push('volatile', `upperdir=${upper.files}`, `workdir=${upper.work}`)
    }
    const { path } = this.at(id)
    await mkdir(path)
    await this.holder.run(`mount -t overlay -o ${parts.join(',')} overlay m/${id}`)
    if (upper) await openUp(join(this.#area, upper.work))
  }

  /** `lazily` also while somebody is in it, who then keeps it for as long. */
  async unmount(id: string, how: 'lazily' | 'idle'): Promise<void> {
    if (!this.holder.alive) return
    // What is no longer mounted is no problem, and what still is keeps its folder from being removed.
    await this.holder.run(how === 'lazily' ? `umount -l m/${id} || :` : `umount m/${id}`)
    await rmdir(this.at(id).path)
  }

  /** Where layers can be read as the one folder that they are. Stays until `forget`. */
  view(layers: readonly string[]): Promise<string> {
    const [top = '', ...rest] = layers
    if (rest.length === 0) return Promise.resolve(join(this.#area, top))
    let view = this.#views.get(top)
    if (view === undefined) {
      const id = viewOf(top)
      view = this.mount(id, layers).then(() => this.at(id).path)
      view.catch(() => this.#views.delete(top))
      this.#views.set(top, view)
    }
    return view
  }

  async forget(top: string): Promise<void> {
    if (await this.#views.get(top)?.catch(() => undefined)) await this.unmount(viewOf(top), 'lazily')
    this.#views.delete(top)
  }
}

/** The same in a user namespace and for root. With the kernel's marks for renamed folders, the upper layer would not tell what changed. */
function options(): string {
  return isRoot() ? 'index=off,metacopy=off,redirect_dir=off' : 'index=off,userxattr'
}

/** The kernel gives nobody a right to its own folders, not even to remove them; it does not need them closed. */
async function openUp(work: string): Promise<void> {
  for (const folder of ['work', 'work/incompat', 'work/incompat/volatile']) {
    await chmod(join(work, folder), 0o700).catch(() => {})
  }
}

function viewOf(top: string): string {
  return `v${top.replaceAll('/', '-')}`
}
