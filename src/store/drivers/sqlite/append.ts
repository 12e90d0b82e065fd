import type { ChunkRow } from '../../driver.ts'
import type { Database } from './database.ts'
import type { Extension } from './extension.ts'
import type { SessionCache } from './session-cache.ts'
import { longestTail } from './tail.ts'

const into = 'INSERT INTO chunk (n, id, previous, position, session, at, body) VALUES'

/** Inside a transaction, where the number is known to be free. */
export const insertChunk = `${into} (?, unhex(?), ?, ?, ?, ?, ?)`

/** A number that others took and that was collected since is free again: the newest says more than whether this one is there. */
const insertNext = `${into} (max(?, (SELECT max(n) FROM chunk)), unhex(?), ?, ?, ?, ?, ?) ON CONFLICT (n) DO NOTHING`

/**
 * One new chunk behind the newest of a session that this connection wrote last: a single statement, which is a transaction by itself.
 * False, and nothing written, when it is more than that, or when another connection has taken the number or a later one.
 */
export function appendOne(
  db: Database,
  cache: SessionCache,
  { isMore, known, row, chunks }: Extension,
): boolean {
  if (isMore || chunks?.length !== 1 || cache.tailLength >= longestTail) return false
  const chunk = chunks[0] as ChunkRow
  if (row.head !== chunk.id || chunk.session !== row.id || chunk.previous !== known.row.head) return false
  if (chunk.blobs.length > 0 || !cache.isFresh(known.head)) return false
  const n = cache.next
  const { changes } = db
    .sql(insertNext)
    .run(n, chunk.id, known.head, chunk.index, known.n, row.updated, chunk.body)
  if (changes !== 1) return false
  cache.took(n)
  cache.recorded(n, known.head)
  cache.moved(row, n)
  return true
}
