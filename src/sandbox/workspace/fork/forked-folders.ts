import { mkdir } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { cancelledError, onAbort } from '../../../base/abort.ts'
import { RathError, show } from '../../../base/errors.ts'
import { beforeExit } from '../../host/exit.ts'
import { removeFolder, removeFolderSync } from '../../host/remove-folder.ts'
import type { HostFolder } from '../../spec.ts'
import { Bases, type Lease } from './bases.ts'
import { btrfs, copy, reflink } from './copies.ts'
import { collectLeftovers, findLeftovers, type Leftover, makeArea } from './leftovers.ts'
import type { Branch, ForkBase, Forker, ForkMethod, ForkMethodName, Probe } from './method.ts'
import { overlay } from './overlay.ts'

/** A folder of one branch, nobody else's. */
export interface ForkedFolder extends AsyncDisposable {
  /** Where it lies. It may be in a mount that only `enter` leads commands to, see `Holder.view` for what that means for paths. */
  readonly host: HostFolder
  /**
   * Paths that may differ from the base, relative and in order, where the method knows without looking at every file; else undefined. Each
   * stands for one entry, except that a folder which is gone stands for all that was in it. `.` is the folder itself.
   */
  changed(): Promise<readonly string[] | undefined>
  /** Removes it with everything in it. Idempotent. */
  close(): Promise<void>
}

export interface ForkedFoldersOptions {
  /** The ways to try, the cheapest first; all by default. */
  readonly methods?: readonly ForkMethod[]
}

/** Every way there is, the cheapest first. */
export const forkMethods: readonly ForkMethod[] = Object.freeze([overlay, btrfs, reflink, copy])

/** Folders for branches: each starts with the files of a base, and is changed without touching it or another. */
export class ForkedFolders implements AsyncDisposable {
  readonly root: string
  /** The way that is used: the first that this machine has. */
  readonly method: ForkMethodName
  /** All ways that were tried, with the reasons against those that this machine has not. */
  readonly probed: readonly (Probe & { readonly name: ForkMethodName })[]
  readonly #area: string
  readonly #forker: Forker
  readonly #bases: Bases
  readonly #making = new Set<Promise<unknown>>()
  readonly #open = new Set<ForkedFolder>()
  readonly #exit: Disposable
  #closing: Promise<void> | undefined

  /**
   * `root` is where bases and branches are kept, outside any workspace; several processes may share it. Nothing in it outlives this process,
   * unless it is killed: see `leftovers`.
   */
  static async open(
    root: string,
    { methods = forkMethods }: ForkedFoldersOptions = {},
  ): Promise<ForkedFolders> {
    const area = await makeArea(resolve(root))
    try {
      const probed = await Promise.all(methods.map(method => probe(method, area)))
      const method = methods.find((_, i) => probed[i]?.available)
      if (method === undefined) {
        const reasons = probed.map(({ name, reason }) => `${name}: ${reason}`).join('; ')
        throw new RathError('sandbox-unavailable', `No branch can be made in ${show(root)}. ${reasons}.`)
      }
      const work = join(area, 'work')
      await mkdir(work)
      return new ForkedFolders(resolve(root), area, await method.start(work), method.name, probed)
    } catch (error) {
      await removeFolder(area)
      throw error
    }
  }

  private constructor(
    root: string,
    area: string,
    forker: Forker,
    method: ForkMethodName,
    probed: ForkedFolders['probed'],
  ) {
    this.root = root
    this.method = method
    this.probed = probed
    this.#area = area
    this.#forker = forker
    this.#bases = new Bases(forker)
    this.#exit = beforeExit(() => {
      forker.abandon()
      removeFolderSync(area)
    })
  }

  /** A folder with the files of `base`, which is written when the first branch of its tree is made. */
  async fork(base: ForkBase, { signal }: { readonly signal?: AbortSignal } = {}): Promise<ForkedFolder> {
    this.#check()
    if (signal?.aborted) throw cancelledError(signal)
    const made = this.#fork(base)
    this.#making.add(made)
    const forget = () => void this.#making.delete(made)
    made.then(forget, forget)
    return signal ? unlessAborted(made, signal) : made
  }

  /** What processes left in `root` that have ended without closing. */
  leftovers(): Promise<readonly Leftover[]> {
    return findLeftovers(this.root)
  }

  /** Removes them; with `dryRun` it only says which. */
  collect(options: { readonly dryRun?: boolean } = {}): ReturnType<typeof collectLeftovers> {
    return collectLeftovers(this.root, options)
  }

  /** Removes all branches and bases of this process. Idempotent. */
  close(): Promise<void> {
    this.#closing ??= this.#close()
    return this.#closing
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }

  async #fork(base: ForkBase): Promise<ForkedFolder> {
    try {
      const lease = await this.#bases.use(base)
      try {
        const folder = new OpenFolder(await this.#forker.branch(lease.frozen), lease, () =>
          this.#open.delete(folder),
        )
        this.#open.add(folder)
        return folder
      } catch (error) {
        await lease.release()
        throw error
      }
    } catch (error) {
      if (error instanceof RathError) throw error
      const message = `A branch of ${show(base.tree)} cannot be made by ${this.method}: ${(error as Error).message}`
      throw new RathError('sandbox-failed', message, { cause: error, data: { method: this.method } })
    }
  }

  async #close(): Promise<void> {
    await Promise.allSettled(this.#making)
    await Promise.all([...this.#open].map(folder => folder.close()))
    await this.#forker.close()
    await removeFolder(this.#area)
    this.#exit[Symbol.dispose]()
  }

  #check(): void {
    if (this.#closing !== undefined) {
      throw new RathError('sandbox-closed', `The branches in ${this.root} are closed; open them again.`)
    }
  }
}

class OpenFolder implements ForkedFolder {
  readonly host: HostFolder
  readonly #branch: Branch
  readonly #lease: Lease
  readonly #closed: () => void
  #closing: Promise<void> | undefined

  constructor(branch: Branch, lease: Lease, closed: () => void) {
    this.host = Object.freeze(branch.host)
    this.#branch = branch
    this.#lease = lease
    this.#closed = closed
  }

  async changed(): Promise<readonly string[] | undefined> {
    return this.#branch.changed?.()
  }

  close(): Promise<void> {
    this.#closing ??= this.#close()
    return this.#closing
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }

  async #close(): Promise<void> {
    await this.#branch.remove()
    await this.#lease.release()
    this.#closed()
  }
}

async function probe(method: ForkMethod, area: string): Promise<ForkedFolders['probed'][number]> {
  const folder = join(area, method.name)
  await mkdir(folder)
  try {
    return { name: method.name, ...(await method.probe(folder)) }
  } finally {
    await removeFolder(folder)
  }
}

/** The base goes on being made, for others who wait for it; a folder that comes too late is removed. */
async function unlessAborted(made: Promise<ForkedFolder>, signal: AbortSignal): Promise<ForkedFolder> {
  const { promise: aborted, reject } = Promise.withResolvers<never>()
  using _ = onAbort(signal, () => reject(cancelledError(signal)))
  try {
    return await Promise.race([made, aborted])
  } catch (error) {
    made.then(folder => folder.close()).catch(() => {})
    throw error
  }
}
