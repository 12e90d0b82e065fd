import { resolve } from 'node:path'
import { RathError } from '../../base/errors.ts'
import { canonicalJson, type JsonObject } from '../../base/json.ts'
import type { SandboxBackend, SandboxSpec } from '../../sandbox/spec.ts'
import { foldAt } from '../../session/chain.ts'
import type { Chunk } from '../../session/chunk.ts'
import { identityOf } from '../../session/identity.ts'
import { filesLane, isPlacedFolder, type Lane, laneBefore, rootLane } from '../../session/lane.ts'
import { type Session, valueFrom } from '../../session/session.ts'
import { folderIn, type PlacedFolder } from './placed-folder.ts'

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
