import type { GcReport } from '../../spec.ts'
import type { Database } from './database.ts'

/** Marks from every session's head and every recent chunk, then counts or removes the rest. */
export async function sweep(
  db: Database,
  before: number,
  dryRun: boolean,
): Promise<Omit<GcReport, 'dryRun'>> {
  const report = await db.write(() => {
    db.exec('CREATE TEMP TABLE IF NOT EXISTS reached (n INTEGER PRIMARY KEY); DELETE FROM reached')
    db.sql(
      `INSERT INTO reached
       WITH RECURSIVE chain (n) AS (
         SELECT head FROM session WHERE head IS NOT NULL
         UNION SELECT n FROM chunk WHERE stored >= ?
         UNION SELECT chunk.previous FROM chain JOIN chunk ON chunk.n = chain.n WHERE chunk.previous IS NOT NULL
       ) SELECT n FROM chain`,
    ).run(before)
    const lost = count(db, 'FROM chunk WHERE n NOT IN (SELECT n FROM reached) AND session > 0', 'body')
    const looseBlobs = `FROM blob WHERE written < ${Math.floor(before)}
      AND NOT EXISTS (SELECT 1 FROM chunk_blob JOIN reached ON reached.n = chunk_blob.chunk WHERE chunk_blob.blob = blob.id)
      AND lower(hex(blob.id)) NOT IN (SELECT value FROM entry, json_each(entry.blobs))`
    const loose = count(db, looseBlobs, 'bytes')
    if (!dryRun) {
      db.exec(`
        DELETE ${looseBlobs};
        DELETE FROM word WHERE rowid IN (SELECT n FROM chunk WHERE n NOT IN (SELECT n FROM reached)
          AND n <= (SELECT value FROM counter WHERE name = 'indexed'));
        DELETE FROM chunk_blob WHERE chunk NOT IN (SELECT n FROM reached);
        ${keepOtherRows}
        DELETE FROM chunk WHERE n NOT IN (SELECT n FROM reached);
        DELETE FROM touched WHERE session NOT IN (SELECT n FROM session) AND n < (SELECT max(n) FROM touched);
        UPDATE counter SET value = min(value, (SELECT coalesce(max(n), 0) FROM chunk)) WHERE name = 'indexed';
      `)
    }
    db.exec('DELETE FROM reached')
    return { chunks: lost.count, blobs: loose.count, bytes: lost.bytes + loose.bytes }
  })
  if (!dryRun) await db.read(() => db.exec('PRAGMA incremental_vacuum'))
  return report
}

/**
 * Of the rows that are no chunks, those stay that tell of a session that is there. A new one takes the next number, so that others notice
 * that something has gone, and so that the number of a chunk that was the newest is not given out again: who follows the store may
 * have come that far.
 */
const keepOtherRows = `
  INSERT INTO chunk (id, position, session, stored, body) VALUES (x'', 0, 0, 0, '');
  INSERT OR IGNORE INTO reached SELECT n FROM chunk
  WHERE session < 0 AND -session IN (SELECT n FROM session) OR n = (SELECT max(n) FROM chunk);`

function count(db: Database, from: string, column: string): { count: number; bytes: number } {
  const sql = `SELECT count(*) AS count, coalesce(sum(length(CAST(${column} AS BLOB))), 0) AS bytes ${from}`
  return db.sql(sql).get() as { count: number; bytes: number }
}
