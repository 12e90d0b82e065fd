import type { ChunkKind } from '../../../session/chunk.ts'
import type { FoundRow, IndexRow, IndexWords } from '../../driver.ts'
import type { Pool } from './pool.ts'
import { beginShared } from './schema.ts'
import { fromText } from './text.ts'

/** Chunks wait for the word index in a queue, because they do not become visible in the order of their numbers. */
export async function unindexed(pool: Pool, limit: number): Promise<IndexRow[]> {
  return pool.query(
    `SELECT encode(chunk.id, 'hex') AS id, chunk.body
     FROM (SELECT chunk FROM openrath.unindexed ORDER BY chunk LIMIT $1) AS waiting JOIN openrath.chunk ON chunk.n = waiting.chunk
     ORDER BY chunk.n`,
    [limit],
  )
}

/** Who finds a chunk being indexed by another waits for that one: after this, all of the given are in the index. */
export async function indexChunks(pool: Pool, given: readonly IndexWords[]): Promise<void> {
  await pool.transaction(connection =>
    connection.write([
      { text: beginShared },
      {
        text: `WITH given AS (
            SELECT chunk.n, words FROM unnest($1::text[], $2::text[]) AS given (id, words)
            JOIN openrath.chunk ON chunk.id = decode(given.id, 'hex')
          ), mine AS MATERIALIZED (
            SELECT unindexed.chunk FROM openrath.unindexed WHERE chunk IN (SELECT n FROM given) ORDER BY chunk FOR UPDATE
          ), added AS (
            INSERT INTO openrath.word (chunk, size, words)
            SELECT n, cardinality(split), split FROM mine JOIN given ON given.n = mine.chunk,
              string_to_array(given.words, ' ') AS split WHERE given.words <> '' ON CONFLICT DO NOTHING
          )
          DELETE FROM openrath.unindexed WHERE chunk IN (SELECT chunk FROM mine)`,
        values: [given.map(row => row.id), given.map(row => row.words)],
      },
    ]),
  )
}

/** A word is in a text or not, so what ranks is the text's size: a shorter one with all the words is more about them. */
export async function searchWords(
  pool: Pool,
  words: readonly string[],
  kind: ChunkKind | undefined,
  limit: number,
): Promise<FoundRow[]> {
  const ofKind = 'AND EXISTS (SELECT FROM openrath.chunk WHERE chunk.n = word.chunk AND chunk.kind = $3)'
  const rows = await pool.query<FoundRow & { session: string | null }>(
    `SELECT encode(chunk.id, 'hex') AS id, chunk.position AS index, chunk.body, session.id AS session
     FROM (
       SELECT chunk, size FROM openrath.word WHERE words @> $1::text[] ${kind === undefined ? '' : ofKind}
       ORDER BY size, chunk DESC LIMIT $2
     ) AS best
     JOIN openrath.chunk ON chunk.n = best.chunk LEFT JOIN openrath.session ON session.n = chunk.session
     ORDER BY best.size, best.chunk DESC`,
    [words, limit, ...(kind === undefined ? [] : [kind])],
  )
  return rows.map(row => ({ ...row, session: fromText(row.session ?? '') }))
}
