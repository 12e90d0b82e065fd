import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { runSystem } from '../../../base/programs.ts'
import { copyFolder } from '../../host/copy-folder.ts'
import { removeFolder } from '../../host/remove-folder.ts'
import type { Branch, ForkBase, Forker, ForkMethod, ForkMethodName, Frozen, Probe } from './method.ts'

/** A snapshot of a subvolume: the file system shares everything until it is written. */
export const btrfs: ForkMethod = byCopies('btrfs', {
  make: async path => void (await runSystem('btrfs', ['subvolume', 'create', path])),
  copy: async (from, to) => void (await runSystem('btrfs', ['subvolume', 'snapshot', from, to])),
  // Ordinary users may delete only empty ones, unless the disk is mounted with `user_subvol_rm_allowed`.
  remove: path =>
    runSystem('btrfs', ['subvolume', 'delete', path]).then(
      () => {},
      () => removeFolder(path),
    ),
})

/** Files of their own that share blocks: it saves the disk, and not much time. */
export const reflink: ForkMethod = byCopies('reflink', {
  make: async path => void (await mkdir(path)),
  copy: (from, to) => copyFolder(from, to, ['--reflink=always']),
  remove: removeFolder,
})

/** What works everywhere. Not hard links: a file written in place would be written in the base too. */
export const copy: ForkMethod = byCopies('copy', {
  make: async path => void (await mkdir(path)),
  copy: (from, to) => copyFolder(from, to),
  remove: removeFolder,
})

/** How folders are made from nothing, from another, and taken away. */
interface Copying {
  make(path: string): Promise<void>
  copy(from: string, to: string): Promise<void>
  remove(path: string): Promise<void>
}

function byCopies(name: ForkMethodName, copying: Copying): ForkMethod {
  return {
    name,
    probe: folder => tryCopies(copying, folder),
    start: async area => new CopyForker(copying, area),
  }
}

class Folder implements Frozen {
  readonly path: string
  readonly remove: () => Promise<void>

  constructor(path: string, remove: (path: string) => Promise<void>) {
    this.path = path
    this.remove = () => remove(path)
  }
}

class CopyForker implements Forker {
  readonly #how: Copying
  readonly #area: string
  readonly #bases = new Set<string>()
  #count = 0

  constructor(how: Copying, area: string) {
    this.#how = how
    this.#area = area
  }

  async freeze(base: ForkBase, near?: Frozen): Promise<Frozen> {
    const path = this.#next('b')
    this.#bases.add(path)
    try {
      if (near instanceof Folder && base.delta) {
        await this.#how.copy(near.path, path)
        await base.delta(path)
      } else {
        await this.#how.make(path)
        await base.fill(path)
      }
    } catch (error) {
      await this.#remove(path)
      throw error
    }
    return new Folder(path, at => this.#remove(at))
  }

  async branch(base: Frozen): Promise<Branch> {
    const path = this.#next('f')
    try {
      await this.#how.copy((base as Folder).path, path)
    } catch (error) {
      await this.#how.remove(path)
      throw error
    }
    return { host: { path }, remove: () => this.#how.remove(path) }
  }

  async close(): Promise<void> {
    await Promise.all([...this.#bases].map(path => this.#remove(path)))
  }

  abandon(): void {}

  #next(kind: string): string {
    return join(this.#area, `${kind}${this.#count++}`)
  }

  async #remove(path: string): Promise<void> {
    this.#bases.delete(path)
    await this.#how.remove(path)
  }
}

async function tryCopies({ make, copy, remove }: Copying, folder: string): Promise<Probe> {
  const [base, branch] = [join(folder, 'base'), join(folder, 'branch')]
  try {
    await make(base)
    // Long enough to be kept in blocks of its own.
    await writeFile(join(base, 'file'), 'base'.repeat(4096))
    await copy(base, branch)
    await writeFile(join(branch, 'file'), 'branch')
    const kept = await readFile(join(base, 'file'), 'utf8')
    if (kept.startsWith('base')) return { available: true }
    return { available: false, reason: 'what was written to a copy showed in its original' }
  } catch (error) {
    return { available: false, reason: (error as Error).message.replaceAll(folder, '.') }
  } finally {
    for (const path of [branch, base]) await remove(path)
  }
}
