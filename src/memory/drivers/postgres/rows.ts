import type { JsonObject } from '../../../base/json.ts'
import type { Memory, MemorySource } from '../../spec.ts'
import { uriOf } from '../../uri.ts'

/** A row of `entry`, as `columns` has it. */
export interface EntryRow {
  /** As text: the server counts further than a number of JavaScript, and we never calculate with it. */
  readonly n: string
  readonly id: string
  readonly scope: string
  readonly category: string
  readonly lane: string
  readonly rejected: boolean
  readonly happened: number
  readonly written: number
  readonly expires: number | null
  readonly version: number
  readonly key: string | null
  readonly tags: string
  readonly metadata: string
  readonly source: string
  readonly body: string
}

export const columns =
  'n, id, scope, category, lane, rejected, happened, written, expires, version, key, tags, metadata, source, body'

export function toMemory(row: EntryRow): Memory {
  const { id, scope, category, lane, expires, key } = row
  return {
    id,
    uri: uriOf(scope, category, id),
    text: row.body,
    scope,
    category,
    tags: JSON.parse(row.tags) as string[],
    metadata: JSON.parse(row.metadata) as JsonObject,
    at: row.happened,
    written: row.written,
    ...(expires !== null && { expires }),
    source: JSON.parse(row.source) as MemorySource,
    ...(key !== null && { key }),
    ...(lane !== '' && { lane }),
    standing: row.rejected ? 'rejected' : 'adopted',
    version: row.version,
  }
}
