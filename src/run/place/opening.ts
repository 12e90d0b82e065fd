import type { Digest } from '../../base/digest.ts'
import { RathError } from '../../base/errors.ts'
import type { JsonObject } from '../../base/json.ts'
import type { Sandbox, SandboxBackend } from '../../sandbox/spec.ts'
import type { Chunk } from '../../session/chunk.ts'
import type { Session } from '../../session/session.ts'
import { Place } from './place.ts'
import type { Workspaces } from './workspaces.ts'

/** The place itself that a session was sent to. */
export async function placedFolder(
  backend: SandboxBackend,
  { spec }: Chunk<'placement'>,
  session: Session | undefined,
  workspaces: Workspaces | undefined,
  signal: AbortSignal,
): Promise<Place> {
  const sandbox = (await attached(backend, session, signal)) ?? (await backend.open(spec, { signal }))
  if (backend.openIn === undefined || sandbox.hostPath === undefined) return new Place(sandbox)
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
  const folder = await workspaces.fork(tree, near, signal)
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
export async function remoteFork(
  parent: Place,
  backend: SandboxBackend,
  session: Session | undefined,
): Promise<Place> {
  const { sandbox, serial } = parent
  if (sandbox.fork === undefined) {
    throw new RathError(
      'sandbox-unsupported',
      `${backend.name} cannot give a branch files of its own. Fork with { workspace: 'shared' }, or place the branch somewhere else with to().`,
    )
  }
  const known = session ? (lastOn(session, sandbox.id)?.serial ?? 0) : 0
  if (known !== serial) {
    throw new RathError(
      'workspace-moved',
      `The place that this branch was forked off, ${backend.name} ${sandbox.id}, has gone on since: ${serial} calls may have changed it, and the branch knows of ${known}. ` +
        'Let branches begin before the session they come from goes on.',
    )
  }
  const [forked] = await sandbox.fork(1)
  return new Place(forked as Sandbox)
}

/** The sandbox that a session worked in before this process began, where the backend can find it again. */
async function attached(
  backend: SandboxBackend,
  session: Session | undefined,
  signal: AbortSignal,
): Promise<Sandbox | undefined> {
  if (backend.attach === undefined || session === undefined) return undefined
  const last = session.chunks.findLast(
    chunk => chunk.kind === 'tool-result' && chunk.ranOn?.backend === backend.name,
  )
  const id = last?.kind === 'tool-result' ? last.ranOn?.id : undefined
  return typeof id === 'string' ? backend.attach(id, { signal }) : undefined
}

function lastOn(session: Session, id: string): { readonly serial: number } | undefined {
  const last = session.chunks.findLast(chunk => chunk.kind === 'tool-result' && chunk.ranOn?.id === id)
  return last?.kind === 'tool-result' ? (last.ranOn as JsonObject & { serial: number }) : undefined
}

async function orClosed<T>(sandbox: Sandbox, work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    await sandbox.close()
    throw error
  }
}
