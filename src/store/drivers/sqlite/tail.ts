import type { Database } from './database.ts'

/**
 * Chunks with a higher number are the tail. Such a row is all that an append writes: it is durable, and every reader looks at it, but
 * the index of digests and the head in its session's row wait until many of them are folded at once.
 */
export const folded = "(SELECT value FROM counter WHERE name = 'folded')"

/** A tail is folded when it is as long as this. Readers scan it, so it must not be much longer. */
export const longestTail = 256

/** Runs inside a transaction. What sessions, chunks and readers see of them stays the same. */
export function fold(db: Database): void {
  db.sql(
    `UPDATE session SET head = last.n, length = last.position + 1, updated = last.at
     FROM (SELECT session, max(n) AS n, position, at FROM chunk WHERE n > ${folded} GROUP BY session) AS last
     WHERE session.n = last.session`,
  ).run()
  // Should two rows ever be the same chunk, either may be found.
  db.sql(
    `INSERT OR IGNORE INTO digest SELECT id, n FROM chunk WHERE n > ${folded} AND session > 0 ORDER BY id`,
  ).run()
  db.sql("UPDATE counter SET value = coalesce((SELECT max(n) FROM chunk), value) WHERE name = 'folded'").run()
}

/** Selects the number of a chunk by its digest in hex, `?1`. */
export const numberOfChunk = `
  SELECT n FROM digest WHERE id = unhex(?1)
  UNION ALL SELECT n FROM chunk WHERE n > ${folded} AND id = unhex(?1) LIMIT 1`

const numberBelow = numberOfChunk.replace('AND id', 'AND n < ?2 AND id')

/** The same, if it is lower than `end`. */
export function findChunk(db: Database, id: string, end: number): number | undefined {
  return (db.sql(numberBelow).get(id, end) as { n: number } | undefined)?.n
}
