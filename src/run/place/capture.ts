import type { Digest } from '../../base/digest.ts'
import type { ExecHandle, ExecOutput, ExecResult, Sandbox, SandboxFiles } from '../../sandbox/spec.ts'
import type { Drift, ToolEvidence } from '../../tool/tool-record.ts'
import { HoldingCall } from './hold.ts'
import type { Place } from './place.ts'
import { viewOf } from './sight.ts'

/** Changes that a chunk lists; the trees tell the rest. */
const mostFiles = 1_000

/** The place of a session: opened for it, or as it is open already. */
export interface PlaceSource {
  open(): Promise<Place>
  /** Undefined while it is not open. */
  peek(): Place | undefined
  /** The files as the session knows them; undefined before its first call that may change some. */
  readonly tree: Digest | undefined
  /** Sends trees to the store, and returns the packs that hold them; undefined where nothing is sent. */
  send(trees: readonly Digest[]): Promise<readonly Digest[] | undefined>
  /** Told once, before that first call changes anything. */
  onFirst(tree: Digest): void
}

/**
 * Watches one call. From the moment it asks for its sandbox until it ends nobody else changes the place, so that what differs then is its
 * doing. A call that only writes files costs a look at those; one that runs a command, a look at all of them before and after.
 */
export class Capture {
  readonly #source: PlaceSource
  readonly #holder = new HoldingCall()
  /** The tree when the call began; what it changed is told from there. */
  #before: Digest | undefined
  #drift: Drift | undefined
  /** Paths of it that `#before` does not have as they drifted: what the call made of them cannot be told from that. */
  readonly #mixed = new Set<string>()
  #sandbox: Promise<Sandbox> | undefined
  readonly #touched = new Set<string>()
  #announced: Promise<void> | undefined
  /** Looks come one after the other. */
  #looking: Promise<void> = Promise.resolve()

  constructor(source: PlaceSource) {
    this.#source = source
    this.#before = source.peek()?.files?.seen ?? source.tree
  }

  /** Runs the call; calls of agents inside it share what it holds. */
  run<T>(work: () => T): T {
    return this.#holder.run(work)
  }

  /** The sandbox of the call, opened and held when it first asks. */
  sandbox(): Promise<Sandbox> {
    this.#sandbox ??= this.#begin()
    return this.#sandbox
  }

  /** What happened. The place is free for the next call, whatever comes of this. */
  async end(): Promise<ToolEvidence> {
    try {
      const asked = await this.#sandbox?.then(
        () => true,
        () => false,
      )
      const place = this.#source.peek()
      return place === undefined ? {} : await this.#evidence(place, asked ?? false)
    } finally {
      this.#holder.release()
    }
  }

  async #begin(): Promise<Sandbox> {
    const place = await this.#source.open()
    await this.#holder.take(place.hold)
    await this.#meet(place)
    return watched(place.sandbox, {
      onTouch: paths => this.#touch(place, paths),
      onCommand: () => this.#command(place),
    })
  }

  /** The first call of a session, and the first of this process, look at everything: nobody has looked after them before. */
  async #meet(place: Place): Promise<void> {
    const { files } = place
    if (files === undefined) return
    this.#before = files.seen
    const { tree, onFirst } = this.#source
    if (tree === undefined || place.isNew) await this.#look(place, undefined)
    place.isNew = false
    if (tree !== undefined) return
    // What was there before the session began is no drift of it.
    this.#drift = undefined
    onFirst(this.#before as Digest)
  }

  async #touch(place: Place, paths: readonly string[]): Promise<void> {
    // One that leads outside is for the sandbox to refuse.
    const inside = paths.map(path => place.relative(path)).filter(path => path !== undefined)
    const fresh = inside.filter(path => !this.#touched.has(path))
    for (const path of fresh) this.#touched.add(path)
    if (fresh.length > 0 && !this.#announced) await this.#look(place, fresh)
  }

  #command(place: Place): Promise<void> {
    this.#announced ??= this.#look(place, undefined)
    return this.#announced
  }

  /** Looks before something changes: what differs now is not the call's doing, but for what it has written itself. */
  #look(place: Place, paths: readonly string[] | undefined): Promise<void> {
    const looked = this.#looking.then(async () => {
      const from = this.#before
      const to = await place.files?.look(paths)
      if (place.files === undefined || to === undefined || from === to) return
      if (from === undefined) {
        this.#before = to
        return
      }
      const own = (path: string) => paths === undefined && this.#touched.has(path)
      const files = (await place.files.changes(from, to)).filter(file => !own(file.path))
      if (files.length === 0) return
      this.#drift = { from: this.#drift?.from ?? from, to, files: [...(this.#drift?.files ?? []), ...files] }
      if (paths !== undefined || this.#touched.size === 0) this.#before = to
      else for (const { path } of files) this.#mixed.add(path)
    })
    // Whoever asked for it hears of a failure; the next look is its own.
    this.#looking = looked.catch(() => {})
    return looked
  }

  async #evidence(place: Place, asked: boolean): Promise<ToolEvidence> {
    const ranOn = place.ranOn(this.#announced !== undefined || this.#touched.size > 0)
    const where = asked ? { ranOn } : {}
    const { files } = place
    if (files === undefined) return where
    // A place that was opened inside the call was there before it as it was then.
    const before = this.#before ?? files.first
    const tree = await this.#treeNow(place)
    if (tree === undefined || (!asked && tree === before)) return where
    const changed =
      before === undefined || before === tree
        ? []
        : (await files.changes(before, tree)).filter(
            file => !this.#mixed.has(file.path) || this.#touched.has(file.path),
          )
    const named = [this.#drift?.from, this.#drift?.to, before, tree].filter(one => one !== undefined)
    const packs = await this.#source.send(named)
    return {
      ...where,
      ...(before !== undefined && { before }),
      tree,
      ...(packs && { packs }),
      ...(changed.length > 0 && { files: changed.slice(0, mostFiles) }),
      ...(changed.length > mostFiles && { moreFiles: changed.length - mostFiles }),
      ...(this.#drift && { drift: this.#drift }),
    }
  }

  async #treeNow({ files }: Place): Promise<Digest | undefined> {
    await this.#looking
    if (this.#announced) return files?.look()
    return this.#touched.size > 0 ? files?.look([...this.#touched]) : files?.seen
  }
}

/** Told before anything is changed; the change waits. */
interface Watcher {
  /** These paths are about to be changed. */
  onTouch(paths: readonly string[]): Promise<void>
  /** A command is about to start, which may change anything. */
  onCommand(): Promise<void>
}

/** A sandbox as one call sees it: everything it changes is announced first. */
function watched(sandbox: Sandbox, watcher: Watcher): Sandbox {
  return viewOf(sandbox, {
    files: watchedFiles(sandbox.files, watcher),
    exec: (command, options) => new AnnouncedExec(watcher.onCommand(), () => sandbox.exec(command, options)),
  })
}

function watchedFiles(files: SandboxFiles, { onTouch }: Watcher): SandboxFiles {
  return {
    read: (path, range) => files.read(path, range),
    stat: path => files.stat(path),
    list: path => files.list(path),
    search: query => files.search(query),
    async write(path, data, options) {
      await onTouch([path])
      return files.write(path, data, options)
    },
    async mkdir(path) {
      await onTouch([path])
      return files.mkdir(path)
    },
    async remove(path, options) {
      await onTouch([path])
      return files.remove(path, options)
    },
    async rename(from, to) {
      await onTouch([from, to])
      return files.rename(from, to)
    },
  }
}

/** A command that starts when it has been announced. */
class AnnouncedExec implements ExecHandle {
  readonly result: Promise<ExecResult>
  readonly #started: Promise<ExecHandle>
  #isKilled = false

  constructor(announced: Promise<void>, start: () => ExecHandle) {
    this.#started = announced.then(() => {
      const handle = start()
      if (this.#isKilled) handle.kill()
      return handle
    })
    this.result = this.#started.then(handle => handle.result)
    this.result.catch(() => {})
  }

  kill(): void {
    this.#isKilled = true
    void this.#started.then(
      handle => handle.kill(),
      () => {},
    )
  }

  async *[Symbol.asyncIterator](): AsyncIterator<ExecOutput> {
    yield* await this.#started
  }
}
