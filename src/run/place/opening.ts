import type { Digest } from '../../base/digest.ts'
import { RathError } from '../../base/errors.ts'
import type { Sandbox, SandboxBackend, SandboxSpec } from '../../sandbox/spec.ts'
import type { Chunk } from '../../session/chunk.ts'
import { identityOf } from '../../session/identity.ts'
import { filesLane, type Lane, rootLane } from '../../session/lane.ts'
import type { Session } from '../../session/session.ts'
import { HoldingCall } from './hold.ts'
import { Place } from './place.ts'
import { parentLane } from './place-key.ts'
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
  if (backend.openIn === undefined) {
    return (await attached(backend, came, signal)) ?? new Place(await backend.open(spec, { signal }))
  }
  const sandbox = await backend.open(spec, { signal })
  if (sandbox.hostPath === undefined) return new Place(sandbox)
  return orClosed(
    sandbox,
    async () => new Place(sandbox, await workspaces?.filesIn(sandbox.hostPath as string)),
  )
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

/** The sandbox that a session worked in before this process began, where the backend can find it again. */
export async function attached(
  backend: SandboxBackend,
  came: Came,
  signal: AbortSignal,
): Promise<Place | undefined> {
  const last = lastOn(came, backend.name, came.lane)
  if (last === undefined || backend.attach === undefined) return undefined
  const sandbox = await backend.attach(last.id, { signal })
  return new Place(sandbox, undefined, { lane: filesLane(came.lane), serial: last.serial })
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
