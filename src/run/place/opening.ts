import { resolve } from 'node:path'
import type { Digest } from '../../base/digest.ts'
import { RathError } from '../../base/errors.ts'
import { canonicalJson, type JsonObject } from '../../base/json.ts'
import type { Sandbox, SandboxBackend, SandboxSpec } from '../../sandbox/spec.ts'
import { foldAt, previousOf } from '../../session/chain.ts'
import type { Chunk } from '../../session/chunk.ts'
import { identityOf } from '../../session/identity.ts'
import { filesLane, isPlacedFolder, type Lane, laneBefore, rootLane } from '../../session/lane.ts'
import { type Session, valueFrom } from '../../session/session.ts'
import { HoldingCall } from './hold.ts'
import { Place } from './place.ts'
import type { PlaceFiles } from './place-files.ts'
import { folderIn, type PlacedFolder } from './placed-folder.ts'
import type { Workspaces } from './workspaces.ts'

/** A session as it came here, whose record tells where it worked before this process began. */
export interface Came {
  readonly placed: Chunk<'placement'>
  readonly lane: Lane
  readonly session: Session | undefined
}

/** The place itself that a session was sent to. */
export async function placedFolder(
  backend: SandboxBackend,
  came: Came,
  spec: SandboxSpec | undefined,
  workspaces: Workspaces | undefined,
  signal: AbortSignal,
): Promise<Place> {
  if (backend.openIn === undefined) return remotePlace(backend, came, spec, workspaces, signal)
  const sandbox = await backend.open(spec, { signal })
  if (sandbox.hostPath === undefined) return new Place(sandbox)
  return orClosed(sandbox, async () => {
    const files = await workspaces?.filesIn(sandbox.hostPath as string)
    const tree = folderIn(spec) === undefined ? treeOf(came) : undefined
    // A folder that nobody named was made just now.
    if (files && tree !== undefined) await files.alone(alone => alone.restore(tree))
    return new Place(sandbox, files)
  })
}

/**
 * A place that this machine cannot look into: the one that the session worked in before, where it is still there, or a new one with the
 * session's files.
 */
async function remotePlace(
  backend: SandboxBackend,
  came: Came,
  spec: SandboxSpec | undefined,
  workspaces: Workspaces | undefined,
  signal: AbortSignal,
): Promise<Place> {
  const { found, gone } = await attached(backend, came, workspaces !== undefined, signal)
  const sandbox = found ?? (await backend.open(spec, { signal }))
  return orClosed(sandbox, async () => {
    const files = await filesOf(sandbox, workspaces)
    // Without files there is nothing to go on with but the place itself.
    if (files === undefined && gone !== undefined) throw gone
    const tree = found || sandbox.hostPath !== undefined ? undefined : treeOf(came)
    if (files && tree !== undefined) await files.alone(alone => alone.restore(tree))
    return placeOf(sandbox, files, came)
  })
}

/** A copy for a branch in a place of its own, with the files of a tree; undefined when the backend's files cannot be kept. */
export async function remoteCopy(
  backend: SandboxBackend,
  came: Came,
  tree: Digest,
  workspaces: Workspaces,
  signal: AbortSignal,
): Promise<Place | undefined> {
  const { found } = await attached(backend, came, true, signal)
  const sandbox = found ?? (await backend.open(withoutFolder(came.placed.spec), { signal }))
  return orClosed(sandbox, async () => {
    const files = await filesOf(sandbox, workspaces)
    if (files === undefined) {
      await sandbox.close()
      return undefined
    }
    if (!found) await files.alone(alone => alone.restore(tree))
    return placeOf(sandbox, files, came)
  })
}

/** A copy for a branch that the backend makes of the place itself, whatever else is in it. */
export async function nativeFork(parent: Place, came: Came, workspaces: Workspaces): Promise<Place> {
  const [forked] = ((await parent.sandbox.fork?.(1)) ?? []) as readonly [Sandbox]
  return orClosed(forked, async () => placeOf(forked, await filesOf(forked, workspaces), came))
}

async function filesOf(
  sandbox: Sandbox,
  workspaces: Workspaces | undefined,
): Promise<PlaceFiles | undefined> {
  return sandbox.hostPath === undefined
    ? workspaces?.filesBeyond(sandbox)
    : workspaces?.filesIn(sandbox.hostPath)
}

function placeOf(sandbox: Sandbox, files: PlaceFiles | undefined, came: Came): Place {
  const { serial = 0 } = lastOn(came, sandbox.backend, came.lane) ?? {}
  return new Place(sandbox, files, { lane: filesLane(came.lane), serial })
}

/** The files that a session has: as its last call left them, or those that it had where it was before it was placed here. */
export function treeOf({ placed, session }: Came): Digest | undefined {
  return session && (foldAt(valueFrom(session).tip).tree ?? foldAt(previousOf(placed)).tree)
}

/** A branch does not work in the folder that a person handed over. */
function withoutFolder(spec: SandboxSpec | undefined): SandboxSpec | undefined {
  if (typeof spec !== 'object') return spec
  const { path: _, ...rest } = spec
  return rest
}

/** A copy for a branch, on this machine. */
export async function forkedPlace(
  backend: SandboxBackend,
  { spec }: Chunk<'placement'>,
  { tree, near }: { readonly tree: Digest; readonly near: Digest },
  workspaces: Workspaces,
  signal: AbortSignal,
): Promise<Place> {
  const folder = await workspaces.fork(tree, near, backend.plainFolders ?? false, signal)
  try {
    const files = await workspaces.filesOf(folder, tree)
    const sandbox = (await backend.openIn?.(folder.host, spec, { signal })) as Sandbox
    return new Place(sandbox, files)
  } catch (error) {
    await folder.close()
    throw error
  }
}

/** A copy for a branch where only the backend can make one, and only of the place as it is now. */
export async function remoteFork(parent: Place, backend: SandboxBackend, came: Came): Promise<Place> {
  const { sandbox } = parent
  const { name } = backend
  const own = lastOn(came, name, came.lane)
  if (own !== undefined) {
    throw new RathError(
      'sandbox-unavailable',
      `This branch worked in ${name} ${own.id}, which is closed, and ${name} keeps no files. Place the branch anew with to().`,
    )
  }
  if (sandbox.fork === undefined) {
    throw new RathError(
      'sandbox-unsupported',
      `${name} cannot give a branch files of its own. Fork with { workspace: 'shared' }, or place the branch somewhere else with to().`,
    )
  }
  const holder = new HoldingCall()
  await holder.take(parent.hold)
  try {
    const { serial } = parent
    const known = lastOn(came, name, parentLane(came.lane))?.serial ?? 0
    if (known !== serial) {
      throw new RathError(
        'workspace-moved',
        `The place that this branch was forked off, ${name} ${sandbox.id}, has gone on since: ${serial} calls may have changed it, and the branch knows of ${known}. ` +
          'Let branches begin before the session they come from goes on.',
      )
    }
    const [forked] = await sandbox.fork(1)
    return new Place(forked as Sandbox, undefined, { lane: filesLane(came.lane) })
  } finally {
    holder.release()
  }
}

/**
 * The sandbox that a session worked in before this process began, where the backend can find it again. `gone` is why it cannot, when the files
 * may be had from elsewhere.
 */
async function attached(
  backend: SandboxBackend,
  came: Came,
  keepsFiles: boolean,
  signal: AbortSignal,
): Promise<{ readonly found?: Sandbox; readonly gone?: RathError }> {
  const last = lastOn(came, backend.name, came.lane)
  if (last === undefined || backend.attach === undefined) return {}
  try {
    return { found: await backend.attach(last.id, { signal }) }
  } catch (error) {
    if (!keepsFiles || !(error instanceof RathError) || error.code !== 'sandbox-unavailable') throw error
    return { gone: error }
  }
}

/** The same as a place, where no files are kept. */
export async function attachedPlace(
  backend: SandboxBackend,
  came: Came,
  signal: AbortSignal,
): Promise<Place | undefined> {
  const { found } = await attached(backend, came, false, signal)
  return found && placeOf(found, undefined, came)
}

/** The id of the sandbox that the session worked in on its own lane. */
export function lastSandbox(came: Came): string | undefined {
  return lastOn(came, came.placed.backend, came.lane)?.id
}

/** What the record says of the place of a lane since it was placed. Calls that change nothing do not tell. */
function lastOn(
  { placed, session }: Came,
  backend: string,
  lane: Lane,
): { readonly id: string; readonly serial: number } | undefined {
  const chunks = session?.chunks ?? []
  for (let i = chunks.length - 1; i >= 0; i--) {
    const chunk = chunks.at(i) as Chunk
    if (chunk.kind === 'placement' && identityOf(chunk) === identityOf(placed)) return undefined
    if (chunk.kind !== 'tool-result' || chunk.ranOn?.backend !== backend) continue
    const { id, serial, lane: on = rootLane } = chunk.ranOn
    if (typeof id === 'string' && typeof serial === 'number' && on === filesLane(lane)) return { id, serial }
  }
  return undefined
}

async function orClosed<T>(sandbox: Sandbox, work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    await sandbox.close()
    throw error
  }
}

/** A place that is open or being opened, and who needs it. */
export class OpenPlace {
  readonly opening: Promise<Place>
  /** The folder of a branch, whose files are kept: it can be laid out again. */
  readonly isKept: boolean
  /** Runs under way that use it. */
  readonly runs = new Set<string>()
  /** Once it is open. */
  place: Place | undefined
  readonly #placed = new WeakSet<Chunk>()
  #tokens = 0

  constructor(opening: Promise<Place>, isKept: boolean) {
    this.opening = opening
    this.isKept = isKept
    opening.then(
      place => {
        this.place = place
      },
      () => {},
    )
  }

  /** Whether this chunk is new here: sessions that hold it can use the place. */
  isNewToken(placed: Chunk): boolean {
    if (this.#placed.has(placed)) return false
    this.#placed.add(placed)
    this.#tokens++
    return true
  }

  dropToken(): void {
    this.#tokens--
  }

  /** What can be laid out again is needed by runs alone; anything else also by sessions that were placed there. */
  get isUnused(): boolean {
    return this.runs.size === 0 && (this.isKept || this.#tokens === 0)
  }

  async close(): Promise<void> {
    // What could not be opened has nothing to close.
    const place = await this.opening.catch(() => undefined)
    await place?.close()
  }
}

/** The chunk that says where a session works. */
export function placementOf(session: Session): Chunk<'placement'> {
  const placed = foldAt(valueFrom(session).tip).placement
  if (placed !== undefined) return placed
  throw new RathError(
    'placement-missing',
    "This session has no place to work in, so there are no files and no commands. Whoever starts it gives it one with session.to('local', './').",
  )
}

/**
 * Sessions whose placement says the same share a place. One that names no folder gets one of its own, shared by what came from the
 * session that was placed: the chunk that placed it tells.
 */
export function placementKey(
  placed: Chunk<'placement'>,
  { openIn }: SandboxBackend,
  known: PlacedFolder | undefined,
): string {
  const { backend, spec } = placed
  if (spec === undefined) return canonicalJson([backend, null, identityOf(placed)])
  return canonicalJson([backend, openIn === undefined ? spec : wholePath(spec, known)])
}

/** The place of the lane that a session works in: the placed folder itself, or a copy for the lane. */
export function laneKey(placement: string, lane: Lane): string {
  return isPlacedFolder(lane) ? placement : `${placement} ${filesLane(lane)}`
}

/** The lane whose files a copy for this one starts with. */
export function parentLane(lane: Lane): Lane {
  return filesLane(laneBefore(filesLane(lane)) ?? rootLane)
}

/** `./` and the folder that it is are one place. */
function wholePath(spec: SandboxSpec, known: PlacedFolder | undefined): JsonObject {
  const path = folderIn(spec)
  const rest = typeof spec === 'string' ? {} : spec
  return path === undefined ? rest : { ...rest, path: known?.path ?? resolve(path) }
}
