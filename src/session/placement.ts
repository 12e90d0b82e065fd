import { RathError } from '../base/errors.ts'
import { canonicalJson, type JsonObject } from '../base/json.ts'
import { foldAt } from './chain.ts'
import type { Chunk, Workspace } from './chunk.ts'

/** Where a session's tools run. */
export interface Placement {
  readonly backend: string
  readonly spec?: string | JsonObject
  readonly workspace?: Workspace
}

export function placementAt(tip: Chunk | undefined): Placement | undefined {
  const chunk = foldAt(tip).placement
  if (chunk === undefined) return undefined
  return Object.freeze({
    backend: chunk.backend,
    ...(chunk.spec !== undefined && { spec: chunk.spec }),
    ...(chunk.workspace !== undefined && { workspace: chunk.workspace }),
  })
}

/** Refuses sessions that run in different places. One without a place has no files and goes along with any. */
export function checkSamePlace(tips: readonly (Chunk | undefined)[]): void {
  const places = new Set<string>()
  for (const tip of tips) {
    const placement = placementAt(tip)
    if (placement) places.add(canonicalJson([placement.backend, placement.spec ?? null]))
  }
  if (places.size < 2) return
  const names = [...places].map(place => {
    const [backend, spec] = JSON.parse(place)
    return spec === null ? backend : `${backend} ${typeof spec === 'string' ? spec : JSON.stringify(spec)}`
  })
  throw new RathError(
    'placement-conflict',
    `These sessions are placed differently (${names.join(' and ')}), and files in different places cannot be joined. ` +
      `Move them to one place with to(), or merge with policy 'ours', 'theirs' or a function.`,
    { data: { places: names } },
  )
}
