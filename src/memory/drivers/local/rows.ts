import type { JsonObject } from '../../../base/json.ts'
import type { Memory, MemorySource } from '../../spec.ts'
import { uriOf } from '../../uri.ts'
import type { Database, Row } from './database.ts'
import { corrupt } from './errors.ts'
import type { Names } from './names.ts'

export function toMemory(row: Row, names: Names, path: string): Memory {
  const scope = names.text(row.scope as number)
  const category = names.text(row.category as number)
  const lane = names.text(row.lane as number)
  const id = row.id as string
  return {
    id,
    uri: uriOf(scope, category, id),
    text: row.text as string,
    scope,
    category,
    tags: parsed<string[]>(row.tags as string, path),
    metadata: parsed<JsonObject>(row.metadata as string, path),
    at: row.at as number,
    written: row.written as number,
    ...(row.expires !== null && { expires: row.expires as number }),
    source: parsed<MemorySource>(row.source as string, path),
    ...(row.key !== null && { key: row.key as string }),
    ...(lane !== '' && { lane }),
    standing: row.rejected ? 'rejected' : 'adopted',
    version: row.version as number,
  }
}

export function rowByNumber(db: Database, n: number): Row | undefined {
  return db.get('SELECT * FROM entry WHERE n = ?', n)
}

export function parsed<T>(text: string, path: string): T {
  try {
    return JSON.parse(text) as T
  } catch {
    throw corrupt(path, 'an entry holds what is no JSON')
  }
}
