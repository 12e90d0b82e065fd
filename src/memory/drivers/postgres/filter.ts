import { sha256 } from '../../../base/digest.ts'
import { canonicalJson, type JsonObject } from '../../../base/json.ts'
import { lanesSeenFrom } from '../../lane.ts'
import type { MemoryFilter } from '../../spec.ts'
import type { Value } from './pool.ts'

/** Conditions on `entry` and the values they refer to. */
class Conditions {
  readonly values: Value[]
  readonly #all: string[] = []

  constructor(values: readonly Value[] = []) {
    this.values = [...values]
  }

  /** `$` in the condition stands for the value. */
  add(condition: string, value: Value): this {
    this.values.push(value)
    this.#all.push(condition.replaceAll('$', `$${this.values.length}`))
    return this
  }

  toString(): string {
    return this.#all.join(' AND ')
  }
}

/** What of a store somebody on a lane sees at a time. */
export function visible(
  place: number,
  lane: string | undefined,
  now: number,
  values?: readonly Value[],
): Conditions {
  return living(place, now, values).add('entry.lane = ANY ($::text[])', ['', ...lanesSeenFrom(lane ?? '')])
}

function living(place: number, now: number, values?: readonly Value[]): Conditions {
  return new Conditions(values)
    .add('entry.place = $', place)
    .add('(entry.expires IS NULL OR entry.expires > $)', now)
}

/** Everything that a filter asks for. */
export function matching(
  place: number,
  filter: MemoryFilter,
  now: number,
  values?: readonly Value[],
  onlySeen = true,
): Conditions {
  const { scope, category, tags = [], metadata = {}, since, until, standing, lane, asker } = filter
  const all = onlySeen ? visible(place, lane, now, values) : living(place, now, values)
  if (scope !== undefined) {
    // Not LIKE: a name may hold its wildcards.
    const scopes = [scope].flat()
    all.add(
      `EXISTS (SELECT FROM unnest($::text[]) AS asked WHERE entry.scope = asked OR starts_with(entry.scope, asked || '/'))`,
      scopes,
    )
  }
  if (asker !== undefined) {
    all.add(
      `(entry.scope !~ '^(user|agent)/' OR entry.scope = $ OR starts_with(entry.scope, $ || '/'))`,
      asker,
    )
  }
  if (category !== undefined) all.add('entry.category = ANY ($::text[])', [category].flat())
  const labels = labelsOf(tags, metadata)
  if (labels.length > 0) all.add('entry.labels @> $::text[]', labels)
  if (since !== undefined) all.add('entry.happened >= $', since)
  if (until !== undefined) all.add('entry.happened < $', until)
  if (standing !== undefined) all.add('entry.rejected = $', standing === 'rejected')
  return all
}

/** Tags and fields of the metadata as texts of one list, told apart by how they begin. */
export function labelsOf(tags: readonly string[], metadata: JsonObject): string[] {
  return [
    ...tags.map(tag => short(`#${tag}`)),
    ...Object.entries(metadata).map(([name, value]) => short(`=${canonicalJson([name, value])}`)),
  ]
}

/** A key of an index may not be long. */
function short(label: string): string {
  return label.length > 200 ? label[0] + sha256(label) : label
}

/** What a filter ends: on every lane, or, given one, what waits on it and on those forked off it. */
export function toForget(place: number, { lane, ...filter }: MemoryFilter, now: number): Conditions {
  const all = matching(place, filter, now, [], false)
  if (lane !== undefined) {
    all.add("(entry.lane <> '' AND (entry.lane = $ OR starts_with(entry.lane, $ || '/')))", lane)
  }
  return all
}
