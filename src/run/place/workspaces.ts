import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { mkdir } from 'node:fs/promises'
import { dirname, isAbsolute, join, relative, resolve } from 'node:path'
import type { Digest } from '../../base/digest.ts'
import { RathError } from '../../base/errors.ts'
import type { Sandbox } from '../../sandbox/spec.ts'
import { changesBetween } from '../../sandbox/workspace/changes.ts'
import { type ForkedFolder, ForkedFolders, forkMethods } from '../../sandbox/workspace/fork/forked-folders.ts'
import { ObjectStore } from '../../sandbox/workspace/objects.ts'
import { KnownContent, RemoteWorkspace } from '../../sandbox/workspace/remote.ts'
import { ownFolder } from '../../sandbox/workspace/scan.ts'
import { Workspace } from '../../sandbox/workspace/workspace.ts'
import type { FileChange } from '../../session/chunk.ts'
import { homeFolder, privateFolder } from './home.ts'
import { FolderLock, type Guard, PlaceFiles } from './place-files.ts'
import { PlacedFolders } from './placed-folder.ts'

/**
 * What a runtime keeps of the files that its sessions work on: the trees, and the folders of branches. Both lie outside every workspace,
 * under `OPENRATH_HOME` or `~/.openrath`, and are made when first used.
 */
export class Workspaces {
  readonly folder: string
  /** Which folder of this machine each placement stands for. */
  readonly placed: PlacedFolders
  readonly #known = new KnownContent()
  #objects: Promise<ObjectStore> | undefined
  #forks: Promise<ForkedFolders> | undefined
  #plainForks: Promise<ForkedFolders> | undefined

  constructor(folder = usualFolder()) {
    this.folder = folder
    this.placed = new PlacedFolders(join(folder, 'placed'))
  }

  get objects(): Promise<ObjectStore> {
    this.#objects ??= ObjectStore.open(join(this.#private(), 'objects'))
    return this.#objects
  }

  get forks(): Promise<ForkedFolders> {
    this.#forks ??= ForkedFolders.open(join(this.#private(), 'branches'))
    return this.#forks
  }

  /** Branches that are folders like any other, by the cheapest way that makes such. */
  get plainForks(): Promise<ForkedFolders> {
    const methods = forkMethods.filter(({ name }) => name !== 'overlay')
    this.#plainForks ??= ForkedFolders.open(join(this.#private(), 'branches'), { methods })
    return this.#plainForks
  }

  /** The files that the sessions of a placement began with. Kept, so that a run which goes on in another process finds the same. */
  began(placement: Digest): Digest | undefined {
    try {
      // Empty, when whoever wrote it was killed.
      return readFileSync(this.#beganFile(placement), 'utf8') || undefined
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
      throw error
    }
  }

  /** The first to say so decides. */
  begin(placement: Digest, tree: Digest): Digest {
    const file = this.#beganFile(placement)
    mkdirSync(dirname(file), { recursive: true, mode: 0o700 })
    try {
      writeFileSync(file, tree, { flag: 'wx', mode: 0o600 })
      return tree
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
      const known = this.began(placement)
      if (known === undefined) writeFileSync(file, tree)
      return known ?? tree
    }
  }

  /** The files that those of the named placements began with which are known here. */
  allBegan(named: ReadonlySet<Digest>): Digest[] {
    return this.#placements()
      .filter(placement => named.has(placement))
      .map(placement => this.began(placement))
      .filter(tree => tree !== undefined)
  }

  /** Forgets placements that are not named and that nobody wrote down in the last milliseconds; how many. */
  forgetBegan(named: ReadonlySet<Digest>, olderThan: number, now = Date.now()): number {
    const forgotten = this.#placements().filter(placement => {
      const written = statSync(this.#beganFile(placement), { throwIfNoEntry: false })?.mtimeMs ?? now
      return !named.has(placement) && written <= now - olderThan
    })
    for (const placement of forgotten) rmSync(this.#beganFile(placement), { force: true })
    for (const placement of this.placed.placements()) {
      if (!named.has(placement) && !existsSync(this.#beganFile(placement))) this.placed.forget(placement)
    }
    return forgotten.length
  }

  /** Whether a session of this placement has worked here. */
  isPlaced(placement: Digest): boolean {
    return existsSync(this.#beganFile(placement)) || this.placed.has(placement)
  }

  #placements(): Digest[] {
    return existsSync(join(this.folder, 'began')) ? readdirSync(join(this.folder, 'began')) : []
  }

  #beganFile(placement: Digest): string {
    return join(this.folder, 'began', placement)
  }

  async has(tree: Digest): Promise<boolean> {
    return (await this.objects).has(tree)
  }

  /** The files of a folder that a person handed over. */
  async filesIn(folder: string): Promise<PlaceFiles> {
    this.#checkOutside(folder)
    const objects = await this.objects
    const workspace = await Workspace.open(folder, objects, { mayHoldCode: true })
    return this.#files(workspace, undefined, {
      objects,
      take: () => FolderLock.take(workspace.folder, this.folder),
    })
  }

  /** The files of a sandbox that only its commands reach; undefined when it has not the programs that this takes. */
  async filesBeyond(sandbox: Sandbox): Promise<PlaceFiles | undefined> {
    const workspace = new RemoteWorkspace(sandbox, await this.objects, this.#known)
    try {
      await workspace.snapshot()
    } catch (error) {
      if (error instanceof RathError && error.code === 'sandbox-unsupported') return undefined
      throw error
    }
    return new PlaceFiles(workspace, undefined, (from, to) => this.changes(from, to))
  }

  /** A folder of its own for a branch, with the files of a tree; `near` is one that other branches began with. */
  async fork(
    tree: Digest,
    near: Digest | undefined,
    isPlain: boolean,
    signal?: AbortSignal,
  ): Promise<ForkedFolder> {
    const objects = await this.objects
    const restoreIn = async (folder: string) => {
      const workspace = await Workspace.open(folder, objects, { keep: false })
      await workspace.restore(tree)
      await workspace.close()
    }
    const base = {
      tree,
      fill: restoreIn,
      ...(near !== undefined && near !== tree && { near, delta: restoreIn }),
    }
    const forks = await (isPlain ? this.plainForks : this.forks)
    return forks.fork(base, signal ? { signal } : {})
  }

  /** The files in such a folder. */
  async filesOf(folder: ForkedFolder, tree: Digest): Promise<PlaceFiles> {
    const options = { keep: false, holds: tree }
    return this.#files(await Workspace.open(folder.host.path, await this.objects, options), folder)
  }

  /** Makes a folder equal to a tree. What was there is kept; its tree is returned. */
  async checkout(tree: Digest, folder: string): Promise<Digest> {
    await mkdir(folder, { recursive: true })
    const files = await this.filesIn(folder)
    try {
      return await files.alone(async alone => {
        await this.checkCode(files.loadedCode(), await alone.look(), tree)
        return (await alone.restore(tree)).before
      })
    } finally {
      await files.close()
    }
  }

  /** Refuses a checkout that would rewrite code which this process has loaded from the folder. */
  async checkCode(loaded: readonly string[], from: Digest, to: Digest): Promise<void> {
    const isLoaded = (path: string) => loaded.some(one => path === one || path.startsWith(`${one}/`))
    const changed =
      loaded.length === 0 ? [] : (await this.changes(from, to)).filter(({ path }) => isLoaded(path))
    if (changed.length === 0) return
    const shown = changed.slice(0, 5).map(({ path }) => path)
    throw new RathError(
      'path-read-only',
      `The checkout would rewrite code that this process has loaded: ${shown.join(', ')}${changed.length > 5 ? ` and ${changed.length - 5} more` : ''}. Check out into another folder: runtime.checkout(session, './elsewhere').`,
      { data: { paths: shown } },
    )
  }

  async changes(from: Digest, to: Digest): Promise<readonly FileChange[]> {
    return from === to ? [] : changesBetween(await this.objects, from, to)
  }

  /** Removes the folders of branches. What was kept of them stays. */
  async close(): Promise<void> {
    await (await this.#forks)?.close()
    await (await this.#plainForks)?.close()
    ;(await this.#objects)?.close()
  }

  /** What is kept is for this user alone; what an earlier version left open is closed. */
  #private(): string {
    return privateFolder(this.folder, ['objects', 'began', 'placed'])
  }

  /** Files cannot be kept inside the folder that they are kept of; what is in its `.openrath` is no part of it. */
  #checkOutside(folder: string): void {
    const inside = relative(folder, resolve(this.folder))
    if (inside.startsWith('..') || isAbsolute(inside) || inside.split('/')[0] === ownFolder) return
    throw new RathError(
      'invalid-argument',
      `Files of sessions are kept in ${this.folder}, which lies inside ${folder}, where this session works. Set OPENRATH_HOME, or createRuntime({ workspaces }), to a folder outside it.`,
    )
  }

  #files(workspace: Workspace, folder?: ForkedFolder, guard?: Guard): PlaceFiles {
    return new PlaceFiles(workspace, folder, (from, to) => this.changes(from, to), guard)
  }
}

function usualFolder(): string {
  return join(homeFolder(), 'workspaces')
}
