import type { Digest } from '../../base/digest.ts'
import { RathError } from '../../base/errors.ts'
import { changesOf, type Event } from '../../run/graph/history.ts'
import { changesBetween } from '../../sandbox/workspace/changes.ts'
import { foldAt } from '../../session/chain.ts'
import { type Session, valueFrom } from '../../session/session.ts'
import { openKeptFiles } from '../kept-files.ts'
import type { Cutter } from './cutter.ts'
import type { FinalPatch } from './dossier.ts'
import { fileStep } from './tool-step.ts'

/** What became of the files: between the first tree and the last where both can be read, else the recorded patches one after the other. */
export async function patchOf(
  final: Session,
  events: readonly Event[],
  cutter: Cutter,
  workspaces?: string,
): Promise<FinalPatch> {
  const from = firstTree(final)
  const to = foldAt(valueFrom(final).tip).tree
  const trees = { ...(from !== undefined && { from }), ...(to !== undefined && { to }) }
  if (from !== undefined && to !== undefined && workspaces !== undefined) {
    try {
      const objects = await openKeptFiles(workspaces)
      const changes = await changesBetween(objects, from, to, { patch: 100_000, patches: 1_000_000 })
      return { source: 'trees', ...trees, files: changes.map(file => fileStep(file, cutter)) }
    } catch (error) {
      if (!(error instanceof RathError)) throw error
      return { ...recorded(events, cutter), ...trees, note: `The trees could not be read: ${error.message}` }
    }
  }
  return {
    ...recorded(events, cutter),
    ...trees,
    ...(from !== undefined && { note: 'The files themselves were not at hand.' }),
  }
}

function recorded(events: readonly Event[], cutter: Cutter): Pick<FinalPatch, 'source' | 'files'> {
  const files = changesOf(events)
    .filter(({ event }) => event.inFinal)
    .map(({ event, file }) => ({ ...fileStep(file, cutter), step: event.n }))
  return { source: files.length > 0 ? 'recorded' : 'none', files }
}

/** The files as the first call, or the placement, found them. */
function firstTree(session: Session): Digest | undefined {
  for (const chunk of session.chunks) {
    if (chunk.kind === 'placement' && chunk.workspace?.tree !== undefined) return chunk.workspace.tree
    if (chunk.kind === 'tool-result' && chunk.before !== undefined) return chunk.before
  }
  return undefined
}
