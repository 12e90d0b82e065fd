import { cancelledError, onAbort } from '../../base/abort.ts'
import type { Digest } from '../../base/digest.ts'
import { RathError } from '../../base/errors.ts'
import { SandboxRegistry } from '../../sandbox/registry.ts'
import type { SandboxBackend } from '../../sandbox/spec.ts'
import { foldAt } from '../../session/chain.ts'
import type { Chunk } from '../../session/chunk.ts'
import type { JoinedFiles, JoinRequest } from '../../session/files.ts'
import { identityOf } from '../../session/identity.ts'
import { isPlacedFolder, type Lane, placedLane, rootLane } from '../../session/lane.ts'
import { type Session, valueFrom } from '../../session/session.ts'
import { Capture } from './capture.ts'
import { Holder } from './hold.ts'
import { joinFiles } from './join.ts'
import type { KeptFiles } from './kept-files.ts'
import { OpenPlace } from './open-place.ts'
import { attached, type Came, forkedPlace, placedFolder, remoteFork } from './opening.ts'
import type { Place } from './place.ts'
import { laneKey, parentLane, placementKey, placementOf } from './place-key.ts'
import { Workspaces } from './workspaces.ts'

export interface PlacesOptions {
  readonly sandboxes?: readonly SandboxBackend[] | undefined
  /** Where trees and the folders of branches are kept, `OPENRATH_HOME` or `~/.openrath` by default; `false` keeps no files, and forks then share theirs. */
  readonly workspaces?: string | false | undefined
}

/** How files are brought to where a run goes on. */
export interface Following {
  /** The call only makes others, which work in the place. */
  readonly isOuter: boolean
  /** Something was cut off, so that what was last seen need not be what is there. */
  readonly isHalfWritten: boolean
  /** The files that results leave which the session does not know of yet; undefined when there are none. */
  after(known: Digest | undefined): Promise<Digest | undefined>
}

/** A session that works somewhere, and the run it works in. */
export interface Visit {
  readonly session: Session
  readonly run?: string | undefined
  readonly signal?: AbortSignal | undefined
}

/**
 * The places of a runtime. One is opened when a tool first asks for it, once however many ask at the same time, for every session that
 * works there. The folder that a session was placed in stays open while a session of this process can use it; that of a branch until the
 * last run that uses it ends: its files are kept, and can be laid out again.
 */
export class Places {
  readonly backends: SandboxRegistry
  #workspaces: Workspaces | undefined
  readonly #options: PlacesOptions
  /** Of a replay: the files that every placement begins with. */
  #scratch: { readonly began: Digest } | undefined
  readonly #open = new Map<string, OpenPlace>()
  /** Placements without a folder that stand for another one. */
  readonly #shared = new Map<string, string>()
  /** Placements of agents inside calls, and those of whoever made the call. */
  readonly #inside = new WeakMap<Chunk<'placement'>, Chunk<'placement'>>()
  /** By placement, the files that its sessions began with. */
  readonly #began = new Map<Digest, Digest>()
  readonly #tokens = new FinalizationRegistry<string>(key => this.#dropToken(key))
  readonly #closing = new AbortController()

  constructor(options: PlacesOptions = {}) {
    const { sandboxes = [], workspaces } = options
    this.#options = options
    this.backends = new SandboxRegistry(sandboxes)
    this.#workspaces = workspaces === false ? undefined : new Workspaces(workspaces)
  }

  /** The files that are kept; undefined when none are. */
  get workspaces(): KeptFiles | undefined {
    return this.#workspaces
  }

  /** The place of a session. An abort ends the wait, and not the opening, which others may be waiting for. */
  async open({ session, run, signal }: Visit): Promise<Place> {
    if (signal?.aborted) throw cancelledError(signal)
    const placed = placementOf(session)
    const entry = this.#entry(placed, laneOf(session), session)
    if (run !== undefined) entry.runs.add(run)
    return signal === undefined ? entry.opening : orAborted(entry.opening, signal)
  }

  /** Watches one call on a session. */
  capture(visit: Visit): Capture {
    const { session } = visit
    const value = valueFrom(session)
    const { placement, tree } = foldAt(value.tip)
    return new Capture({
      open: () => this.open(visit),
      peek: () => placement && this.#open.get(this.#key(placement, laneOf(session)))?.place,
      tree,
      onFirst: first => placement && this.#begin(placement, first),
    })
  }

  /** Lets a session work where another does, also where that has no folder of its own: a sub-agent beside the agent which called it. */
  share(session: Session, other: Session): void {
    const placed = placementOf(session)
    const outer = placementOf(other)
    this.#inside.set(placed, outer)
    if (placed.spec === undefined) this.#shared.set(this.#own(placed), this.#placement(outer))
  }

  /**
   * For a run that goes on with outcomes on record: before its first call in a place, the files that belong to those outcomes. Afterwards
   * what is there is its own. Returns what was there instead, which is kept.
   */
  async follow(visit: Visit, { isOuter, isHalfWritten, after }: Following): Promise<Digest | undefined> {
    const { session, run = '' } = visit
    const placed = placementOf(session)
    // Where no files are kept there is nothing to bring.
    if (this.workspaces === undefined || this.backends.get(placed.backend).openIn === undefined)
      return undefined
    const place = await this.open(visit)
    if (place.isUsedIn(run) && !this.#scratch) return undefined
    if (!isOuter) place.useIn(run)
    const known = foldAt(valueFrom(session).tip).tree ?? this.#beganOn(placed)
    const tree = (await after(known)) ?? known
    if (tree === undefined || place.files === undefined) return undefined
    if (!isHalfWritten && place.files.seen === tree) return undefined
    const found = await this.restore(visit, tree)
    return found === tree ? undefined : found
  }

  /** The same after an agent inside a call, whose work may have been on record to its end: the files as it left them. */
  async catchUp(visit: Visit): Promise<void> {
    await this.follow(visit, { isOuter: false, isHalfWritten: true, after: async () => undefined })
  }

  /** Places of their own for a replay: whatever a session is placed in, it works on copies of the files on record, beginning with `began`. */
  scratch(began: Digest): Places | undefined {
    if (this.#workspaces === undefined) return undefined
    const copies = new Places(this.#options)
    copies.#workspaces = this.#workspaces
    copies.#scratch = { began }
    return copies
  }

  /** Brings the files of a session's place to a tree, the one that the session knows by default. Returns what was there. */
  async restore(visit: Visit, tree = foldAt(valueFrom(visit.session).tip).tree): Promise<Digest | undefined> {
    return tree === undefined ? undefined : this.#restore(await this.open(visit), tree)
  }

  async #restore({ files, hold }: Place, tree: Digest): Promise<Digest | undefined> {
    if (files === undefined) return undefined
    const holder = new Holder()
    await holder.take(hold)
    try {
      const found = await files.look()
      if (found !== tree) await files.restore(tree)
      return found
    } finally {
      holder.release()
    }
  }

  /** The files of a session, as its last call left them, in the folder it was placed in or another one. Returns what was there. */
  async checkout(session: Session, folder?: string): Promise<Digest | undefined> {
    const { tree } = foldAt(valueFrom(session).tip)
    if (tree === undefined) {
      throw new RathError(
        'invalid-argument',
        'No call of this session has changed files yet, so it has none to check out.',
      )
    }
    if (folder !== undefined) return this.#workspaces?.checkout(tree, folder)
    const placed = placementOf(session)
    const place = await this.#entry(placed, placedLane(laneOf(session)), session).opening
    return this.#restore(place, tree)
  }

  /** Merges files and brings the result to the place of the merged session. */
  async join(request: JoinRequest, isAgain = false): Promise<JoinedFiles> {
    const { placed, into, found } = request
    const workspaces = this.#workspaces as Workspaces
    const base = request.base ?? (placed && this.#beganOn(placed)) ?? found
    if (placed === undefined) return joinFiles({ ...request, base }, workspaces, undefined)
    const isFolder = isPlacedFolder(into)
    const entry = isFolder ? this.#entry(placed, into) : this.#open.get(this.#key(placed, into))
    return joinFiles({ ...request, base }, workspaces, await entry?.opening, isAgain)
  }

  /** Ends commands of a process of this machine that was killed, and could not end them. */
  async endLeftBy(process: number): Promise<void> {
    const { backends } = this
    await Promise.all(backends.names.map(name => backends.get(name).endLeftBy?.(process)))
  }

  /** A run has ended: what only it needed is closed. */
  async leave(run: string): Promise<void> {
    const used = [...this.#open].filter(([, entry]) => entry.runs.delete(run))
    await Promise.all(used.map(([key]) => this.#closeUnused(key)))
  }

  /** Closes every place, also one that is only being opened. Rejects with the first failure when all are done. */
  async close(): Promise<void> {
    this.#closing.abort(new Error('the runtime was closed'))
    const entries = [...this.#open.values()]
    this.#open.clear()
    const closed = await Promise.allSettled(entries.map(entry => entry.close()))
    // Those of a replay belong to whoever lent them.
    if (!this.#scratch) await this.#workspaces?.close()
    for (const end of closed) if (end.status === 'rejected') throw end.reason
  }

  /** The place of a lane, which starts to open when it is not open. A branch is opened for a session, whose files it starts with. */
  #entry(placed: Chunk<'placement'>, lane: Lane, session?: Session): OpenPlace {
    if (this.#closing.signal.aborted) {
      throw new RathError('sandbox-closed', 'The runtime is closed, and its sandboxes with it.')
    }
    const key = this.#key(placed, lane)
    const entry = this.#open.get(key) ?? this.#start(key, placed, lane, session)
    if (!entry.isKept && entry.isNewToken(placed)) this.#tokens.register(placed, key)
    return entry
  }

  #start(key: string, placed: Chunk<'placement'>, lane: Lane, session: Session | undefined): OpenPlace {
    const isBranch = this.#scratch !== undefined || key !== this.#placement(placed)
    const came = { placed, lane, session }
    const opening = isBranch ? this.#openBranch(came) : this.#openFolder(came)
    const isKept = isBranch && this.backends.get(placed.backend).openIn !== undefined
    const entry = new OpenPlace(opening, isKept)
    this.#open.set(key, entry)
    // What failed may work the next time.
    opening.catch(() => this.#open.delete(key))
    return entry
  }

  #openFolder(came: Came): Promise<Place> {
    const backend = this.backends.get(came.placed.backend)
    return placedFolder(backend, came, this.#workspaces, this.#closing.signal)
  }

  async #openBranch(came: Came): Promise<Place> {
    const { placed, lane, session } = came
    const backend = this.backends.get(placed.backend)
    const { signal } = this.#closing
    if (backend.openIn === undefined || this.#workspaces === undefined) {
      if (this.#scratch) throw noCopies(backend.name)
      const found = await attached(backend, came, signal)
      if (found !== undefined) return found
      const parent = this.#entry(placed, parentLane(lane), session)
      return remoteFork(await parent.opening, backend, came)
    }
    const began = await this.#beganWith(placed, lane)
    const tree = (session && foldAt(valueFrom(session).tip).tree) ?? began
    return forkedPlace(backend, placed, { tree, near: began }, this.#workspaces, signal)
  }

  /** The files that sessions with this placement began with; as they are now, when no call has changed any yet. */
  async #beganWith(placed: Chunk<'placement'>, lane: Lane): Promise<Digest> {
    const known = this.#scratch?.began ?? this.#beganOn(placed)
    if (known !== undefined) return known
    const { files, hold } = await this.#entry(placed, placedLane(lane)).opening
    const holder = new Holder()
    await holder.take(hold)
    try {
      return this.#begin(placed, (await files?.look()) as Digest)
    } finally {
      holder.release()
    }
  }

  #begin(placed: Chunk<'placement'>, tree: Digest): Digest {
    // What is first done inside a call is also the first that is done around it.
    const outer = this.#inside.get(placed)
    if (outer !== undefined) this.#begin(outer, tree)
    const known = this.#beganOn(placed) ?? this.#workspaces?.begin(identityOf(placed), tree) ?? tree
    this.#began.set(identityOf(placed), known)
    return known
  }

  #beganOn(placed: Chunk<'placement'>): Digest | undefined {
    const identity = identityOf(placed)
    return this.#began.get(identity) ?? this.#workspaces?.began(identity)
  }

  #key(placed: Chunk<'placement'>, lane: Lane): string {
    const { openIn } = this.backends.get(placed.backend)
    const isShared = openIn !== undefined && this.#workspaces === undefined
    const placement = this.#placement(placed)
    return isShared ? placement : laneKey(placement, lane)
  }

  #placement(placed: Chunk<'placement'>): string {
    const own = this.#own(placed)
    return this.#shared.get(own) ?? own
  }

  #own(placed: Chunk<'placement'>): string {
    return placementKey(placed, this.backends.get(placed.backend))
  }

  #dropToken(key: string): void {
    this.#open.get(key)?.dropToken()
    // There is nobody to tell of a failure: nobody can use the place any more.
    this.#closeUnused(key).catch(() => {})
  }

  async #closeUnused(key: string): Promise<void> {
    const entry = this.#open.get(key)
    if (!entry?.isUnused) return
    this.#open.delete(key)
    await entry.close()
  }
}

function noCopies(backend: string): RathError {
  return new RathError(
    'sandbox-unsupported',
    `A replay of tools works on copies of the files, and those of ${backend} are not kept. Replay with mode 'strict' or 'model'.`,
  )
}

function laneOf(session: Session): Lane {
  return session.lineage.lane ?? rootLane
}

function orAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const listening = onAbort(signal, () => reject(cancelledError(signal)))
    promise.then(resolve, reject).finally(() => listening[Symbol.dispose]())
  })
}
