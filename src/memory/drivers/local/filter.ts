import { sha256 } from '../../../base/digest.ts'
import { canonicalJson, type Json, type JsonObject } from '../../../base/json.ts'
import { isOthers, lanesSeenFrom } from '../../lane.ts'
import type { MemoryFilter } from '../../spec.ts'
import { ends, rejected } from './columns.ts'
import type { Database } from './database.ts'
import type { Names } from './names.ts'
import { PostingBuffer } from './postings.ts'
import type { WordIndex } from './word-index.ts'

/** Tags and metadata are words of the index that no text can have: they begin with a character that stands in no word. */
export function labelsOf(tags: readonly string[], metadata: JsonObject): string[] {
  return [...tags.map(tagLabel), ...Object.entries(metadata).map(([name, value]) => fieldLabel(name, value))]
}

const tagLabel = (tag: string) => short(`#${JSON.stringify(tag)}`)
const fieldLabel = (name: string, value: Json) => short(`=${canonicalJson([name, value])}`)
const short = (label: string) =>
  label.length > 80 || /\s/.test(label) ? `${label[0]}${sha256(label)}` : label

/** Whether an entry may be a hit. Only asked of entries that are alive or were, so it looks at little. */
export type Accepts = (n: number) => boolean

export interface Filters {
  readonly accepts: Accepts
  /** Whether the asker may see an entry at all. */
  readonly visible: Accepts
  /** Whether it probably leaves out most entries, so that it is worth asking before anything else. */
  readonly isNarrow: boolean
}

/** A filter over the columns: tables by number, made once a query. */
export function accepting(
  filter: MemoryFilter,
  { db, index, names, now }: { db: Database; index: WordIndex; names: Names; now: number },
): Filters {
  const { columns } = index
  const { flags, lane, expires, scope, category, at } = columns
  const lanes = new Set(lanesSeenFrom(filter.lane ?? '').map(name => names.find('lane', name)))
  const visible: Accepts = n => {
    const flag = flags[n] as number
    if (flag === 0) return false
    if (flag & ends && (expires.get(n) as number) <= now) return false
    const own = lane[n] as number
    return own === 0 || lanes.has(own)
  }
  const scopes =
    filter.scope === undefined
      ? undefined
      : table(
          listOf(filter.scope).flatMap(one => names.scopesUnder(one)),
          names.size,
        )
  const others =
    filter.asker === undefined
      ? undefined
      : table(
          ['user', 'agent']
            .flatMap(kind => names.scopesUnder(kind))
            .filter(one => isOthers(filter.asker, names.text(one))),
          names.size,
        )
  const categories =
    filter.category === undefined
      ? undefined
      : table(
          listOf(filter.category).map(one => names.find('category', one)),
          names.size,
        )
  const labelled = labelledOf(filter, db, index)
  const { since = Number.NEGATIVE_INFINITY, until = Number.POSITIVE_INFINITY, standing } = filter
  const isTimed = filter.since !== undefined || filter.until !== undefined
  const wanted = standing === undefined ? -1 : standing === 'rejected' ? rejected : 0
  // What leaves out most comes first.
  const accepts: Accepts = n => {
    if (scopes !== undefined && scopes[scope[n] as number] !== 1) return false
    if (others !== undefined && others[scope[n] as number] === 1) return false
    if (categories !== undefined && categories[category[n] as number] !== 1) return false
    if (!visible(n)) return false
    if (wanted >= 0 && ((flags[n] as number) & rejected) !== wanted) return false
    if (isTimed && !((at[n] as number) >= since && (at[n] as number) < until)) return false
    return labelled === undefined || labelled.has(n)
  }
  const isNarrow = scopes !== undefined || categories !== undefined || labelled !== undefined
  return { accepts, visible, isNarrow }
}

/** The entries that have every tag and every field asked for. */
function labelledOf(filter: MemoryFilter, db: Database, index: WordIndex): ReadonlySet<number> | undefined {
  const labels = labelsOf(filter.tags ?? [], filter.metadata ?? {})
  if (labels.length === 0) return undefined
  let found: Set<number> | undefined
  for (const label of labels) {
    const buffer = new PostingBuffer()
    index.lookUp(db, label, buffer)
    const have = new Set<number>()
    for (let i = 0; i < buffer.length; i++) {
      const n = buffer.docs[i] as number
      if (found === undefined || found.has(n)) have.add(n)
    }
    found = have
  }
  return found
}

function listOf(one: string | readonly string[]): readonly string[] {
  return typeof one === 'string' ? [one] : one
}

/** A mark for each name there is: reading behind the end of an array takes many times as long. */
function table(numbers: readonly number[], size: number): Uint8Array {
  const marks = new Uint8Array(size)
  for (const n of numbers) if (n !== 0) marks[n] = 1
  return marks
}
