import type { ChunkKind } from '../../../session/chunk.ts'
import type { FoundRow } from '../../driver.ts'
import type { Database } from './database.ts'
import { fromSession, type Sqlite, toHex } from './rows.ts'

export async function search(
  db: Database,
  words: readonly string[],
  kind: ChunkKind | undefined,
  limit: number,
): Promise<FoundRow[]> {
  // Each word in quotes: whatever it holds, it is a word and no operator of the query language.
  const query = words.map(word => `"${word.replaceAll('"', '""')}"`).join(' ')
  const found = await db.read(
    () =>
      db
        .sql(
          `SELECT chunk.n, chunk.id, chunk.position, chunk.body, session.id AS session
           FROM word JOIN chunk ON chunk.n = word.rowid LEFT JOIN session ON session.n = chunk.session
           WHERE word MATCH ?1 AND (?2 = '' OR json_extract(chunk.body, '$.kind') = ?2)
           ORDER BY word.rank, chunk.n DESC LIMIT ?3`,
        )
        .all(query, kind ?? '', limit) as Sqlite[],
  )
  const orphans = found.filter(row => row.session === null)
  const heirs = orphans.length > 0 ? await db.read(() => heirsOf(db, orphans)) : undefined
  return found.map(row => ({
    id: toHex(row.id),
    index: row.position as number,
    body: row.body as string,
    session: (row.session as string | null) ?? heirs?.get(row.n as number) ?? '',
  }))
}

/** For chunks whose session was deleted, the oldest session that reaches each: every head is followed back as far as they lie. */
function heirsOf(db: Database, orphans: readonly Sqlite[]): Map<number, string> {
  const lowest = Math.min(...orphans.map(row => row.position as number))
  const rows = db
    .sql(
      `WITH RECURSIVE chain (n, heir) AS (
         SELECT head.n, min(session.n) ${fromSession} WHERE head.position >= ?1 GROUP BY head.n
         UNION
         SELECT chunk.previous, chain.heir FROM chain JOIN chunk ON chunk.n = chain.n WHERE chunk.position > ?1
       )
       SELECT chain.n, session.id, min(session.n) FROM chain JOIN session ON session.n = chain.heir
       WHERE chain.n IN (SELECT value FROM json_each(?2)) GROUP BY chain.n`,
    )
    .all(lowest, JSON.stringify(orphans.map(row => row.n)))
  return new Map((rows as unknown as { n: number; id: string }[]).map(({ n, id }) => [n, id]))
}
