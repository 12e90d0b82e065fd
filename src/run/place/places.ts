import { isAbsolute, resolve } from 'node:path'
import { cancelledError, onAbort } from '../../base/abort.ts'
import type { Digest } from '../../base/digest.ts'
import { RathError } from '../../base/errors.ts'
import { SandboxRegistry } from '../../sandbox/registry.ts'
import type { SandboxBackend } from '../../sandbox/spec.ts'
import { emptyTree } from '../../sandbox/workspace/object.ts'
import { backwards, foldAt, previousOf } from '../../session/chain.ts'
import type { Chunk, FileChange } from '../../session/chunk.ts'
import type { JoinedFiles, JoinRequest } from '../../session/files.ts'
import { workedIn } from '../../session/fold.ts'
import { identityOf } from '../../session/identity.ts'
import { isPlacedFolder, type Lane, placedLane, rootLane } from '../../session/lane.ts'
import { onLane } from '../../session/lineage.ts'
import { type Session, sessionOf, valueFrom } from '../../session/session.ts'
import type { Store } from '../../store/spec.ts'
import type { ToolEvidence } from '../../tool/tool-record.ts'
import { Capture } from './capture.ts'
import { HoldingCall } from './hold.ts'
import { refuseImported } from './home.ts'
import { joinFiles } from './join.ts'
import {
  attachedPlace,
  type Came,
  forkedPlace,
  laneKey,
  lastSandbox,
  nativeFork,
  OpenPlace,
  parentLane,
  placedFolder,
  placementKey,
  placementOf,
  remoteCopy,
  remoteFork,
  treeOf,
} from './opening.ts'
import type { Place } from './place.ts'
import {
  checkWhereabouts,
  elsewhere,
  folderAt,
  folderId,
  folderIn,
  type PlacedFolder,
  PlacedFolders,
  realOf,
  specIn,
} from './placed-folder.ts'
import { SentFiles } from './sent-files.ts'
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
  /** The last result on record that the session does not know of yet, and the files it left; undefined when there is none. */
  after(known: Digest | undefined): Promise<ToolEvidence | undefined>
}

/** A session that works somewhere, and the run it works in. */
export interface Visit {
  readonly session: Session
  readonly run?: string | undefined
  readonly signal?: AbortSignal | undefined
}

/** The files of sessions, by the digests that their chunks record: what of `Workspaces` is for others. */
interface KeptFiles {
  /** Where they are kept. */
  readonly folder: string
  has(tree: Digest): Promise<boolean>
  /** How one tree differs from another. */
  changes(from: Digest, to: Digest): Promise<readonly FileChange[]>
  /** Makes a folder equal to a tree. What was there is kept; its tree is returned. */
  checkout(tree: Digest, folder: string): Promise<Digest>
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
  /** Which folder each placement stands for. */
  readonly #folders: PlacedFolders
  /** By run, the id of the folder that somebody said its project was moved to. */
  readonly #moved = new Map<string, string>()
  readonly #tokens = new FinalizationRegistry<string>(key => this.#dropToken(key))
  readonly #closing = new AbortController()
  /** Undefined without a store, and where no files are kept. */
  #sent: SentFiles | undefined

  constructor(options: PlacesOptions = {}) {
    const { sandboxes = [], workspaces } = options
    this.#options = options
    this.backends = new SandboxRegistry(sandboxes)
    this.#workspaces = workspaces === false ? undefined : new Workspaces(workspaces)
    this.#folders = this.#workspaces?.placed ?? new PlacedFolders(undefined)
  }

  /** From now on the files of sessions go into this store too, and those that are not on this machine are fetched from it. */
  travelThrough(store: () => Promise<Store>): void {
    const workspaces = this.#workspaces
    if (workspaces) this.#sent ??= new SentFiles(store, () => workspaces.objects, workspaces.folder)
  }

  /** Sends trees of a session to the store, and returns the packs that hold them; undefined where nothing is sent. */
  async send(session: Session, trees: readonly Digest[]): Promise<readonly Digest[] | undefined> {
    // A replay leaves nothing.
    if (this.#scratch || trees.length === 0) return undefined
    const { placement, tree, packs } = foldAt(valueFrom(session).tip)
    const near = { trees: [tree, ...trees], known: { tree, packs }, origin: this.#originOf(placement) }
    return this.#sent?.send(trees, near)
  }

  /** Fetches trees that are not on this machine from the store; `packs` are those that may hold them. */
  async bring(trees: readonly (Digest | undefined)[], packs: readonly Digest[] = []): Promise<void> {
    const wanted = trees.filter(tree => tree !== undefined)
    if (packs.length > 0 && wanted.length > 0) await this.#sent?.bring(wanted, packs, this.#closing.signal)
  }

  /** The files that are kept; undefined when none are. */
  get workspaces(): KeptFiles | undefined {
    return this.#workspaces
  }

  /** The place of a session. An abort ends the wait, and not the opening, which others may be waiting for. */
  async open(visit: Visit): Promise<Place> {
    const { session, run, signal } = visit
    if (signal?.aborted) throw cancelledError(signal)
    const placed = placementOf(session)
    this.check(visit)
    const entry = this.#entry(placed, laneOf(session), session)
    if (run !== undefined) entry.runs.add(run)
    const place = await (signal === undefined ? entry.opening : orAborted(entry.opening, signal))
    this.#claim(placed, laneOf(session), place)
    return place
  }

  /** Refuses a folder that the session did not begin in, with `workspace-elsewhere`. Nothing is opened or made. */
  check({ session, run }: Visit): void {
    const { placement } = foldAt(valueFrom(session).tip)
    if (placement === undefined) return
    if (!this.#scratch) refuseImported(this.#outermost(placement))
    const named = this.#named(placement, laneOf(session))
    if (named !== undefined) this.#checkFolder(named, session, run)
  }

  /** The first effect of a run is about to happen: from now on a folder that was named from the current one is that one. */
  begin(session: Session): void {
    const { placement, tree, folder } = foldAt(valueFrom(session).tip)
    const named = placement && this.#named(placement, rootLane)
    if (named === undefined || isAbsolute(folderIn(named.placed.spec) as string)) return
    // It has begun before, which was not written down yet: where that was, its calls say.
    if (tree !== undefined || folder !== undefined) return
    this.#folders.claim(named.placed, { path: named.path })
  }

  /**
   * Lets a run go on in another folder, because its project was moved there on purpose. It has to hold files that the run knows, or none: what
   * else is there would be lost when the files on record are brought there.
   */
  async move(session: Session, run: string, folder: string, trees: ReadonlySet<Digest>): Promise<void> {
    const found = folderAt(folder)
    if (found === undefined) {
      throw new RathError('path-missing', `There is no folder ${resolve(folder)} to go on in. Make it first.`)
    }
    const { placement, folder: worked, tree } = foldAt(valueFrom(session).tip)
    if (placement) refuseImported(placement)
    const named = placement && this.#named(placement, rootLane)
    const record = named?.record
    if (found.id !== (record?.id ?? worked?.id)) {
      const known = new Set([...trees, tree, placement && this.#beganOn(placement)])
      await this.#checkMoved(found.real, known)
    }
    const was = [record?.id, worked?.id].filter(id => id !== undefined && id !== found.id) as string[]
    if (named) this.#folders.move(named.placed, { ...found, was: [...(record?.was ?? []), ...was] })
    this.#moved.set(run, found.id)
  }

  async #checkMoved(folder: string, known: ReadonlySet<Digest | undefined>): Promise<void> {
    const files = await this.#workspaces?.filesIn(folder)
    const tree = await files?.look()
    await files?.close()
    if (tree === undefined || tree === emptyTree || known.has(tree)) return
    throw new RathError(
      'workspace-elsewhere',
      `${folder} holds other files than the run left (tree ${tree.slice(0, 12)}), and they would be replaced by those on record. Nothing was changed. ` +
        'Give the folder that the project was moved to as it is, or an empty one; or bring the files there first, with runtime.checkout(session, folder) or rath checkout SESSION FOLDER, which keeps what is there.',
      { data: { here: folder, tree } },
    )
  }

  /** Watches one call on a session. */
  capture(visit: Visit): Capture {
    const { session } = visit
    const { placement, tree } = foldAt(valueFrom(session).tip)
    return new Capture({
      open: () => this.open(visit),
      peek: () => this.#peek(session),
      tree,
      send: trees => this.send(session, trees),
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
    if (this.workspaces === undefined) return undefined
    if (this.#peek(session)?.isUsedIn(run) && !this.#scratch) return undefined
    const known = foldAt(valueFrom(session).tip).tree ?? this.#beganOn(placed)
    const last = await after(known)
    const named = this.#named(placed, laneOf(session))
    if (named && last?.ranOn) this.#checkFolder(named, session, run, workedIn(last.ranOn))
    const place = await this.open(visit)
    if (!isOuter) place.useIn(run)
    const tree = last?.tree ?? known
    if (tree === undefined || place.files === undefined) return undefined
    if (!isHalfWritten && place.files.seen === tree) return undefined
    const found = await this.restore(visit, tree, last?.packs)
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
    copies.#sent = this.#sent
    copies.#scratch = { began }
    return copies
  }

  /** The tree of a session's place as it is now; undefined where no files are kept. */
  async look(visit: Visit): Promise<Digest | undefined> {
    const { files, hold } = await this.open(visit)
    if (files === undefined) return undefined
    const holder = new HoldingCall()
    await holder.take(hold)
    try {
      return await files.alone(alone => alone.look())
    } finally {
      holder.release()
    }
  }

  /** The same in the folder itself that the session was placed in, whatever branch it is on. */
  inPlacedFolder({ session, ...rest }: Visit): Visit {
    const value = valueFrom(session)
    const lane = placedLane(laneOf(session))
    return { ...rest, session: sessionOf({ ...value, lineage: onLane(value.lineage, lane || undefined) }) }
  }

  /** Brings the files of a session's place to a tree, the one that the session knows by default. Returns what was there. */
  async restore(
    visit: Visit,
    tree = foldAt(valueFrom(visit.session).tip).tree,
    packs: readonly Digest[] = [],
  ): Promise<Digest | undefined> {
    if (tree === undefined) return undefined
    await this.bring([tree], [...foldAt(valueFrom(visit.session).tip).packs, ...packs])
    return this.#restore(await this.open(visit), tree)
  }

  async #restore({ files, hold }: Place, tree: Digest): Promise<Digest | undefined> {
    if (files === undefined) return undefined
    const holder = new HoldingCall()
    await holder.take(hold)
    try {
      return await files.alone(async alone => {
        const found = await alone.look()
        if (found !== tree) await alone.restore(tree)
        return found
      })
    } finally {
      holder.release()
    }
  }

  /** The files of a session, as its last call left them, in the folder it was placed in or another one. Returns what was there. */
  async checkout(session: Session, folder?: string): Promise<Digest | undefined> {
    const { tree, packs } = foldAt(valueFrom(session).tip)
    if (tree === undefined) {
      throw new RathError(
        'invalid-argument',
        'No call of this session has changed files yet, so it has none to check out.',
      )
    }
    await this.bring([tree], packs)
    if (folder !== undefined) return this.#workspaces?.checkout(tree, folder)
    const placed = placementOf(session)
    refuseImported(placed)
    const lane = placedLane(laneOf(session))
    const named = this.#named(placed, lane)
    if (named) this.#checkFolder(named, session)
    const place = await this.#entry(placed, lane, session).opening
    this.#claim(placed, lane, place)
    const loaded = place.files?.loadedCode() ?? []
    if (place.files && loaded.length > 0)
      await this.#workspaces?.checkCode(loaded, await place.files.look(), tree)
    return this.#restore(place, tree)
  }

  /** Merges files and brings the result to the place of the merged session. */
  async join(request: JoinRequest): Promise<JoinedFiles> {
    const { placed, found } = request
    const workspaces = this.#workspaces as Workspaces
    const base = request.base ?? (placed && this.#beganOn(placed)) ?? found
    await this.bring([...request.sides.map(side => side.tree), request.base, found], request.packs)
    const joined = await this.#join({ ...request, base }, workspaces)
    const trees = [...request.sides.map(side => side.tree), request.base]
    const origin = this.#originOf(placed)
    const packs = this.#scratch ? undefined : await this.#sent?.send([joined.tree], { trees, origin })
    return packs ? { ...joined, packs } : joined
  }

  async #join(request: JoinRequest, workspaces: Workspaces): Promise<JoinedFiles> {
    const { placed, into } = request
    if (placed === undefined) return joinFiles(request, workspaces, undefined)
    refuseImported(placed)
    const isFolder = isPlacedFolder(into)
    const named = isFolder ? this.#named(placed, into) : undefined
    if (named) checkWhereabouts({ ...named, worked: request.worked })
    const entry = isFolder ? this.#entry(placed, into) : this.#open.get(this.#key(placed, into))
    return joinFiles(request, workspaces, await entry?.opening)
  }

  /** Ends commands of a process of this machine that was killed, and could not end them. */
  async endLeftBy(process: string): Promise<void> {
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

  async #openFolder(came: Came): Promise<Place> {
    const backend = this.backends.get(came.placed.backend)
    const named = this.#named(came.placed, came.lane)
    const spec = named ? specIn(came.placed.spec, named.path) : came.placed.spec
    await this.#bringTo(came)
    const place = await placedFolder(backend, came, spec, this.#workspaces, this.#closing.signal)
    if (named === undefined || place.sandbox.hostPath === undefined) return place
    try {
      place.folder = folderAt(place.sandbox.hostPath)?.id
      this.#claim(came.placed, came.lane, place)
      return place
    } catch (error) {
      await place.close()
      throw error
    }
  }

  /** Writes down which folder a placement stands for, when it is first used. Another process may have been faster, elsewhere. */
  #claim(placed: Chunk<'placement'>, lane: Lane, { folder: id, sandbox }: Place): void {
    const named = id === undefined ? undefined : this.#named(placed, lane)
    if (named === undefined || id === undefined || named.record?.id === id) return
    const real = sandbox.hostPath as string
    const stands = this.#folders.claim(named.placed, { path: named.path, real, id })
    if (stands.id !== id) throw elsewhere(stands.real ?? stands.path, real, true)
  }

  /** The folder that sessions of a placement work in themselves, where it is one that somebody named. */
  #named(placed: Chunk<'placement'>, lane: Lane): NamedFolder | undefined {
    const isCopy = this.#scratch !== undefined || (!isPlacedFolder(lane) && this.#workspaces !== undefined)
    if (isCopy || this.backends.get(placed.backend).openIn === undefined) return undefined
    const outer = this.#outermost(placed)
    const path = folderIn(outer.spec)
    if (path === undefined) return undefined
    const record = this.#folders.of(outer)
    return { placed: outer, record, path: record?.path ?? resolve(path) }
  }

  #checkFolder(
    { placed, record, path }: NamedFolder,
    session: Session,
    run?: string,
    worked = foldAt(valueFrom(session).tip).folder,
  ): void {
    const { tree, placement } = foldAt(valueFrom(session).tip)
    checkWhereabouts({ record, worked, path, movedTo: run === undefined ? undefined : this.#moved.get(run) })
    const isUsed = tree !== undefined && tree !== placement?.workspace?.tree
    if (!isUsed || record !== undefined || worked !== undefined) return
    // It worked somewhere before folders were told apart by more than their names.
    const names = foldersNamed(session, placed).filter(name => !this.#isOurs(name))
    const [began] = names
    if (began !== undefined && !names.includes(realOf(path))) {
      throw elsewhere(began, path, folderId(path) !== undefined)
    }
  }

  #isOurs(folder: string): boolean {
    return this.#workspaces !== undefined && folder.startsWith(`${realOf(this.#workspaces.folder)}/`)
  }

  /** The placement of whoever made the outermost call around an agent. */
  #outermost(placed: Chunk<'placement'>): Chunk<'placement'> {
    let outer = placed
    for (let next = this.#inside.get(outer); next; next = this.#inside.get(outer)) outer = next
    return outer
  }

  /** The place of a session if it is open. */
  #peek(session: Session): Place | undefined {
    const { placement } = foldAt(valueFrom(session).tip)
    return placement && this.#open.get(this.#key(placement, laneOf(session)))?.place
  }

  async #openBranch(came: Came): Promise<Place> {
    const { placed, lane, session } = came
    const backend = this.backends.get(placed.backend)
    const { signal } = this.#closing
    if (this.#workspaces === undefined) {
      const found = await attachedPlace(backend, came, signal)
      if (found !== undefined) return found
      const parent = this.#entry(placed, parentLane(lane), session)
      return remoteFork(await parent.opening, backend, came)
    }
    if (backend.openIn === undefined) return this.#openRemoteBranch(came, backend, this.#workspaces)
    const { tree: known, packs } = foldAt(session && valueFrom(session).tip)
    await this.bring([known], packs)
    // Whoever knows its files needs no look at the folder they come from, which may be on another machine.
    const near =
      this.#scratch?.began ?? this.#beganOn(placed) ?? known ?? (await this.#beginNow(placed, lane))
    return forkedPlace(backend, placed, { tree: known ?? near, near }, this.#workspaces, signal)
  }

  /**
   * A branch of a place that this machine cannot look into. As long as the place is as the branch knows it, the backend copies it, and with it
   * whatever lies outside the workspace; else the branch gets a new one with its files.
   */
  async #openRemoteBranch(came: Came, backend: SandboxBackend, workspaces: Workspaces): Promise<Place> {
    const { placed, lane, session } = came
    const { signal } = this.#closing
    await this.#bringTo(came)
    const known = treeOf(came)
    const copyOf = async (tree: Digest) => {
      const copy = await remoteCopy(backend, came, tree, workspaces, signal)
      if (copy === undefined) throw noCopies(backend.name)
      return copy
    }
    if (this.#scratch) return copyOf(known ?? this.#scratch.began)
    const above = parentLane(lane)
    const parent =
      known === undefined
        ? await this.#entry(placed, above, session).opening
        : this.#open.get(this.#key(placed, above))?.place
    if (parent === undefined) return copyOf(known as Digest)
    if (parent.files === undefined) return remoteFork(parent, backend, came)
    const holder = new HoldingCall()
    await holder.take(parent.hold)
    try {
      const now = await parent.files.look()
      const tree = known ?? this.#begin(placed, now)
      return tree === now && parent.sandbox.fork && lastSandbox(came) === undefined
        ? await nativeFork(parent, came, workspaces)
        : await copyOf(tree)
    } finally {
      holder.release()
    }
  }

  /** Fetches the files that a session would begin with in a new place. */
  async #bringTo({ placed, session }: Came): Promise<void> {
    if (session === undefined) return
    for (const { tree, packs } of [foldAt(valueFrom(session).tip), foldAt(previousOf(placed))])
      await this.bring([tree], packs)
  }

  /** No call has changed files yet: sessions with this placement begin with those that are there now. */
  async #beginNow(placed: Chunk<'placement'>, lane: Lane): Promise<Digest> {
    const { files, hold } = await this.#entry(placed, placedLane(lane)).opening
    const holder = new HoldingCall()
    await holder.take(hold)
    try {
      return this.#begin(placed, (await files?.alone(alone => alone.look())) as Digest)
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

  /** The folder that a placement names: sessions that are placed there have most of their files in common. */
  #originOf(placed: Chunk<'placement'> | undefined): string | undefined {
    if (placed === undefined) return undefined
    const isNamed = this.backends.get(placed.backend).openIn !== undefined || typeof placed.spec === 'object'
    return isNamed ? folderIn(placed.spec) : undefined
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
    const backend = this.backends.get(placed.backend)
    return placementKey(placed, backend, this.#folders.of(this.#outermost(placed)))
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

/** A folder that somebody named, and what is written down of it. */
interface NamedFolder {
  readonly placed: Chunk<'placement'>
  readonly record: PlacedFolder | undefined
  readonly path: string
}

/** Folders that calls since the placement say they ran in, the last first. */
function foldersNamed(session: Session, placed: Chunk<'placement'>): string[] {
  const names: string[] = []
  for (const chunk of backwards(valueFrom(session).tip)) {
    if (chunk.kind === 'placement' && identityOf(chunk) === identityOf(placed)) break
    const cwd = chunk.kind === 'tool-result' ? chunk.ranOn?.cwd : undefined
    if (typeof cwd === 'string' && !names.includes(cwd)) names.push(cwd)
  }
  return names
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
