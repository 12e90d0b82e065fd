import type { Digest } from '../../base/digest.ts'
import { RathError } from '../../base/errors.ts'
import type { Json } from '../../base/json.ts'
import { labelsOf } from '../../session/branch.ts'
import type { JoinedFiles, JoinRequest, SessionFiles } from '../../session/files.ts'
import type { Session } from '../../session/session.ts'
import { type Around, currentCall } from '../around.ts'
import { errorOf, failureOf } from '../effect.ts'
import { scopeIn } from '../scope.ts'
import type { Places } from './places.ts'

/** How the sessions of a runtime read and join files: those that the runtime keeps, and no others. */
export function filesIn(places: Places): SessionFiles {
  const join = async (request: JoinRequest) => {
    await checkKept(
      places,
      request.sides.map(side => side.tree),
    )
    return places.join(request)
  }
  return {
    async join(request) {
      const context = currentCall()
      return context ? passJoin(request, context, join) : join(request)
    },
    async changes(from, to) {
      await checkKept(places, [from, to])
      return (await places.workspaces?.changes(from, to)) ?? []
    },
  }
}

/** A merge of files is an effect: a replay takes its result from the record and touches no folder. */
async function passJoin(
  request: JoinRequest,
  context: Around,
  join: (request: JoinRequest) => Promise<JoinedFiles>,
): Promise<JoinedFiles> {
  const { base, found, sides, into, onConflict } = request
  const asks = {
    base: base ?? found ?? null,
    trees: sides.map(side => side.tree),
    toFolder: into === '',
    onConflict: typeof onConflict === 'string' ? onConflict : 'function',
  }
  let cause: unknown
  const passed = await context.run.door.pass(
    {
      kind: 'merge',
      session: context.input as Session,
      request: { ...asks, branches: sides.map(side => labelsOf(side.branch)) },
      firstRequest: { ...asks, branches: sides.map(side => side.branch) },
      sample: scopeIn(context).sample,
      rule: 'workspace',
      by: context.by,
      // Joining again is what puts the files there.
      own: true,
      urgent: true,
    },
    async () => {
      try {
        return { value: (await join(request)) as unknown as Json }
      } catch (error) {
        cause = error
        return { error: failureOf(error) }
      }
    },
  )
  if (passed.error !== undefined) throw cause ?? errorOf(passed.error)
  return passed.value as unknown as JoinedFiles
}

async function checkKept({ workspaces }: Places, trees: readonly Digest[]): Promise<void> {
  const missing: Digest[] = []
  for (const tree of trees) if (!(await workspaces?.has(tree))) missing.push(tree)
  if (missing.length === 0) return
  throw new RathError(
    'unknown-blob',
    `The files of these sessions (${missing.map(tree => tree.slice(0, 12)).join(', ')}) are not kept by this runtime: they were made on another machine, with another OPENRATH_HOME, or by another runtime.`,
    { data: { trees: missing } },
  )
}
