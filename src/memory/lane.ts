import type { MemoryFilter } from './spec.ts'

/** Whether someone on a lane sees an entry that waits for a commit on another: its own, and those it was forked from. */
export function seesLane(reader: string, entry: string | undefined): boolean {
  if (entry === undefined || entry === '' || entry === reader) return true
  return reader.startsWith(`${entry}/`)
}

/** The lanes whose entries are seen from one, itself first; the settled ones not among them. */
export function lanesSeenFrom(reader: string): string[] {
  const lanes: string[] = []
  for (let lane = reader; lane !== ''; lane = lane.slice(0, Math.max(0, lane.lastIndexOf('/'))))
    lanes.push(lane)
  return lanes
}

/** Whether an entry belongs to a user or an agent by name, and the asker is neither that one nor nobody in particular. */
export function isOthers(asker: string | undefined, scope: string): boolean {
  if (asker === undefined || !/^(user|agent)\//.test(scope)) return false
  return scope !== asker && !scope.startsWith(`${asker}/`)
}

/** Whether a scope is one of those asked for: `user` also covers `user/ada`. */
export function coversScope(asked: MemoryFilter['scope'], scope: string): boolean {
  if (asked === undefined) return true
  const list = typeof asked === 'string' ? [asked] : asked
  return list.some(one => scope === one || scope.startsWith(`${one}/`))
}
