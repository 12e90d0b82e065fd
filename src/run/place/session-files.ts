import type { Digest } from '../../base/digest.ts'
import { RathError } from '../../base/errors.ts'
import { labelsOf } from '../../session/branch.ts'
import type { JoinedFiles, JoinRequest, SessionFiles } from '../../session/files.ts'
import type { Session } from '../../session/session.ts'
import { callHere, effect, type Maker, valueIn } from '../effect.ts'
import type { Places } from './places.ts'

/** How the sessions of a runtime read and join files: those that the runtime keeps, and no others. */
export function filesIn(places: Places): SessionFiles {
  const join = async (request: JoinRequest) => {
    await bringKept(
      places,
      request.sides.map(side => side.tree),
      request.packs,
    )
    return places.join(request)
  }
  return {
    async join(request) {
      const context = callHere.here
      return context ? passJoin(request, context, join) : join(request)
    },
    async changes(from, to, packs) {
      await bringKept(places, [from, to], packs)
      return (await places.workspaces?.changes(from, to)) ?? []
    },
  }
}

/** A merge of files is an effect: a replay takes its result from the record and touches no folder. */
async function passJoin(
  request: JoinRequest,
  context: Maker,
  join: (request: JoinRequest) => Promise<JoinedFiles>,
): Promise<JoinedFiles> {
  const { base, found, sides, into, onConflict } = request
  const asks = {
    base: base ?? found ?? null,
    trees: sides.map(side => side.tree),
    toFolder: into === '',
    onConflict: typeof onConflict === 'string' ? onConflict : 'function',
  }
  const passed = await effect(
    context,
    {
      kind: 'merge',
      session: context.input as Session,
      request: { ...asks, branches: sides.map(side => labelsOf(side.branch)) },
      firstRequest: { ...asks, branches: sides.map(side => side.branch) },
      rule: 'workspace',
      // Joining again is what puts the files there.
      own: true,
      urgent: true,
      keepsFailure: true,
    },
    async () => ({ value: await join(request) }),
  )
  return valueIn(passed)
}

async function bringKept(
  places: Places,
  trees: readonly Digest[],
  packs: readonly Digest[] | undefined,
): Promise<void> {
  const { workspaces } = places
  await places.bring(trees, packs)
  const missing: Digest[] = []
  for (const tree of trees) if (!(await workspaces?.has(tree))) missing.push(tree)
  if (missing.length === 0) return
  throw new RathError(
    'unknown-blob',
    `The files of these sessions (${missing.map(tree => tree.slice(0, 12)).join(', ')}) are not kept by this runtime: they were made on another machine, with another OPENRATH_HOME, or by another runtime.`,
    { data: { trees: missing } },
  )
}
