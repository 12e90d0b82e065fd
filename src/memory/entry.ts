import { canonicalJson } from '../base/json.ts'
import { coversScope, isOthers, seesLane } from './lane.ts'
import type { Memory, MemoryChange, MemoryFilter, NewMemory } from './spec.ts'
import { uriOf } from './uri.ts'

/** A checked entry as it is kept, with its defaults. */
export function newEntry(given: NewMemory, id: string, now: number): Memory {
  const { text, scope = 'agent', category = 'fact', tags = [], metadata = {} } = given
  const { at = now, expires, source = {}, key, lane, standing = 'adopted' } = given
  return {
    id,
    uri: uriOf(scope, category, id),
    text,
    scope,
    category,
    tags,
    metadata,
    at,
    written: now,
    ...(expires !== undefined && { expires }),
    source,
    ...(key !== undefined && { key }),
    ...(lane !== undefined && lane !== '' && { lane }),
    standing,
    version: 1,
  }
}

/** An entry after a checked change. An empty lane takes it off its own. */
export function changedEntry(entry: Memory, change: MemoryChange, now: number): Memory {
  const { lane, ...rest } = { ...entry, ...change }
  return {
    ...rest,
    uri: uriOf(rest.scope, rest.category, rest.id),
    ...(lane !== undefined && lane !== '' && { lane }),
    written: now,
    version: entry.version + 1,
  }
}

/** Whether a filter lets an entry through; without a lane, what waits on one is not seen. */
export function fits(entry: Memory, filter: MemoryFilter): boolean {
  const { scope, category, tags = [], metadata = {}, since, until, standing, lane = '' } = filter
  return (
    coversScope(scope, entry.scope) &&
    !isOthers(filter.asker, entry.scope) &&
    (category === undefined || [category].flat().includes(entry.category)) &&
    tags.every(tag => entry.tags.includes(tag)) &&
    Object.entries(metadata).every(
      ([name, value]) =>
        Object.hasOwn(entry.metadata, name) && canonicalJson(entry.metadata[name]) === canonicalJson(value),
    ) &&
    (since === undefined || entry.at >= since) &&
    (until === undefined || entry.at < until) &&
    (standing === undefined || entry.standing === standing) &&
    seesLane(lane, entry.lane)
  )
}
