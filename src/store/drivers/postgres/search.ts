import type { ChunkKind } from '../../../session/chunk.ts'
import type { FoundRow, IndexRow, IndexWords } from '../../driver.ts'
import type { Pool } from './pool.ts'
import { beginShared } from './schema.ts'
import { fromText } from './text.ts'

/** Looked up for each chunk; as NOT EXISTS, the server might read the whole index for every answer. */
const notIndexed = '(SELECT word.chunk FROM openrath.word WHERE word.chunk = waiting.n LIMIT 1) IS NULL'

/**
 * Chunks wait for the word index in a queue of ranges, because they do not become visible in the order of their numbers. Ranges
 * do not overlap, and each has a chunk that is not indexed: as many of them are enough as chunks are asked for.
 */
export async function unindexed(pool: Pool, limit: number): Promise<IndexRow[]> {
  return pool.query(
    `SELECT encode(chunk.id, 'hex') AS id, chunk.body
     FROM (
       SELECT waiting.n FROM (SELECT first, last FROM openrath.unindexed ORDER BY first LIMIT $1) AS range
       CROSS JOIN LATERAL (SELECT n FROM openrath.chunk WHERE n BETWEEN range.first AND range.last ORDER BY n) AS waiting
       WHERE ${notIndexed} LIMIT $1
     ) AS next JOIN openrath.chunk ON chunk.n = next.n ORDER BY chunk.n`,
    [limit],
  )
}

/** Who finds a chunk being indexed by another waits for that one: after this, all of the given are in the index. */
export async function indexChunks(pool: Pool, given: readonly IndexWords[]): Promise<void> {
  await pool.transaction(connection =>
    connection.write([
      { text: beginShared },
      {
        text: `INSERT INTO openrath.word (chunk, size, words)
          SELECT chunk.n, cardinality(split), split FROM unnest($1::text[], $2::text[]) AS given (id, words)
          JOIN openrath.chunk ON chunk.id = decode(given.id, 'hex'), string_to_array(given.words, ' ') AS split
          ORDER BY chunk.n ON CONFLICT DO NOTHING`,
        values: [given.map(row => row.id), given.map(row => row.words)],
      },
      {
        // Materialized, because the server would look for the least and the greatest from the ends of the whole table. A range
        // that grew meanwhile stays: it was drained only as far as it was seen.
        text: `WITH done AS MATERIALIZED (
            SELECT n FROM openrath.chunk WHERE id IN (SELECT decode(given, 'hex') FROM unnest($1::text[]) AS given)
          )
          DELETE FROM openrath.unindexed USING (
            SELECT first AS seen_first, last AS seen_last FROM openrath.unindexed
            WHERE first <= (SELECT max(n) FROM done) AND last >= (SELECT min(n) FROM done) AND ${drained}
          ) AS seen
          WHERE first = seen_first AND last = seen_last`,
        values: [given.map(row => row.id)],
      },
    ]),
  )
}

/** A range of the queue in which nothing is left to do. */
export const drained = `(SELECT waiting.n FROM openrath.chunk AS waiting
  WHERE waiting.n BETWEEN first AND last AND ${notIndexed} LIMIT 1) IS NULL`

/** A word is in a text or not, so what ranks is the text's size: a shorter one with all the words is more about them. */
export async function searchWords(
  pool: Pool,
  words: readonly string[],
  kind: ChunkKind | undefined,
  limit: number,
): Promise<FoundRow[]> {
  const ofKind = 'AND EXISTS (SELECT FROM openrath.chunk WHERE chunk.n = word.chunk AND chunk.kind = $3)'
  const rows = await pool.query<FoundRow & { n: number; session: string | null }>(
    `SELECT chunk.n, encode(chunk.id, 'hex') AS id, chunk.position AS index, chunk.body, session.id AS session
     FROM (
       SELECT chunk, size FROM openrath.word WHERE words @> $1::text[] ${kind === undefined ? '' : ofKind}
       ORDER BY size, chunk DESC LIMIT $2
     ) AS best
     JOIN openrath.chunk ON chunk.n = best.chunk LEFT JOIN openrath.session ON session.n = chunk.session
     ORDER BY best.size, best.chunk DESC`,
    [words, limit, ...(kind === undefined ? [] : [kind])],
  )
  const orphans = rows.filter(row => row.session === null)
  const heirs = orphans.length > 0 ? await heirsOf(pool, orphans) : undefined
  return rows.map(({ n, id, index, body, session }) => ({
    id,
    index,
    body,
    session: fromText(session ?? heirs?.get(n) ?? ''),
  }))
}

/** For chunks whose session was deleted, the oldest session that reaches each: every head is followed back as far as they lie. */
async function heirsOf(
  pool: Pool,
  orphans: readonly { readonly n: number; readonly index: number }[],
): Promise<Map<number, string>> {
  const rows = await pool.query<{ n: number; id: string }>(
    `WITH RECURSIVE chain (n, heir) AS (
       SELECT head, min(n) FROM openrath.session WHERE length > $1 GROUP BY head
       UNION
       SELECT before.n, chain.heir FROM chain CROSS JOIN LATERAL (
         SELECT previous AS n FROM openrath.chunk WHERE chunk.n = chain.n AND position > $1 LIMIT 1
       ) AS before
     )
     SELECT DISTINCT ON (chain.n) chain.n, session.id FROM chain JOIN openrath.session ON session.n = chain.heir
     WHERE chain.n = ANY ($2::bigint[]) ORDER BY chain.n, session.n`,
    [Math.min(...orphans.map(row => row.index)), orphans.map(row => row.n)],
  )
  return new Map(rows.map(({ n, id }) => [n, id]))
}
