import type { Digest } from '../../base/digest.ts'
import { RathError } from '../../base/errors.ts'
import type { Json } from '../../base/json.ts'
import { labelsOf } from '../../session/branch.ts'
import { type JoinedFiles, type JoinRequest, provideFiles } from '../../session/files.ts'
import type { Session } from '../../session/session.ts'
import { type Around, currentCall } from '../around.ts'
import { errorOf, failureOf } from '../effect.ts'
import { scopeIn } from '../scope.ts'
import type { Places } from './places.ts'

/** The places of every runtime of this process that is not closed, the newest last. */
const all = new Set<WeakRef<Places>>()

/** From now on sessions can join and compare files: those of the call around them, or of whichever runtime has kept them. */
export function serveFiles(places: Places): Disposable {
  const reference = new WeakRef(places)
  all.add(reference)
  provideFiles({ join, changes })
  return {
    [Symbol.dispose]() {
      all.delete(reference)
    },
  }
}

async function join(request: JoinRequest): Promise<JoinedFiles> {
  const context = currentCall()
  if (context) return passJoin(request, context)
  const places = await keeperOf(request.sides.map(side => side.tree))
  return places.join(request)
}

async function changes(from: Digest, to: Digest) {
  const { workspaces } = await keeperOf([from, to])
  return (await workspaces?.changes(from, to)) ?? []
}

/** A merge of files is an effect: a replay takes its result from the record and touches no folder. */
async function passJoin(request: JoinRequest, context: Around): Promise<JoinedFiles> {
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
        const places = await keeperOf(request.sides.map(side => side.tree))
        return { value: (await places.join(request)) as unknown as Json }
      } catch (error) {
        cause = error
        return { error: failureOf(error) }
      }
    },
  )
  if (passed.error !== undefined) throw cause ?? errorOf(passed.error)
  return passed.value as unknown as JoinedFiles
}

async function keeperOf(trees: readonly Digest[]): Promise<Places> {
  const current = currentCall()?.runtime.places
  const others = [...all].flatMap(reference => reference.deref() ?? []).reverse()
  for (const places of current ? [current, ...others] : others) {
    const { workspaces } = places
    if (workspaces === undefined) continue
    const has = await Promise.all(trees.map(tree => workspaces.has(tree)))
    if (has.every(Boolean)) return places
  }
  throw new RathError(
    'unknown-blob',
    `The files of these sessions (${trees.map(tree => tree.slice(0, 12)).join(', ')}) are not kept here: they were made on another machine, or with another OPENRATH_HOME.`,
  )
}
